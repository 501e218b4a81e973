// The timeline: a lane an agent, blocks for what lasted, marks for moments, and
// the position, which is scrubbed. Blocks that can be read are elements, so
// that they can be clicked, hovered and read out; finer ones are painted. Only
// what is in sight is either.

import { createAxis } from './axis.js'
import { h, icon, put, setText } from './dom.js'
import { failuresOf } from './failures.js'
import { duration, line, moment, number, plain } from './format.js'
import { bindKeys } from './keys.js'
import { createLegend, kindOf } from './legend.js'
import { arrange, GAP, MARKS, PAD } from './lanes.js'
import { createOverview } from './overview.js'
import { pointers } from './pointers.js'
import { describe, nameOf } from './spans.js'
import { statusOf, tones } from './states.js'

const LEAST_BLOCK = 4 // px, of a block that is an element
const MOST_BLOCKS = 500
const MOST_MARKS = 250
const LABEL_PAD = 14, LETTER = 7, LEAST_LETTERS = 6 // px, px, and how many letters say something
const DURATION = 52 // px
const LEAST_VIEW = { record: 6, time: 4 }
const AXIS = 'helixd-axis'
const HEIGHT = 'helixd-timeline-height'
const LEGEND = 'helixd-legend'

export function mount(element, app) {
  const ui = build(element)
  const failures = failuresOf(app)
  const blocks = new Map() // by span
  const ticks = new Map() // by mark
  const hidden = new Set() // kinds of blocks
  const legend = createLegend(ui.legend, hidden, draw)
  let kind = remembered(AXIS) === 'time' ? 'time' : 'record'
  let axis = createAxis({ spans: [], marks: [], head: 0 }, kind)
  let plan = { lanes: [], height: 0 }
  let view = { from: 0, to: 1 } // in the axis' unit
  let all = true // the view shows everything, and continues to
  let left = 0, width = 1, gutter = 0, bodyHeight = 0, scrolled = 0 // px; see measure
  let frame = 0, dirty = false
  let painted = 0 // rises when what there is, or its colours, change

  const overview = createOverview(ui.over, {
    colours: () => colours(failures), plan: () => plan, axis: () => axis, view: () => view, show,
    position: () => axis.x(app.effectiveAt()),
  })

  const px = (x) => (x - view.from) / (view.to - view.from) * width
  const unpx = (p) => view.from + p / width * (view.to - view.from)

  // --- what there is

  function changed() {
    const t = app.timeline
    painted++
    element.toggleAttribute('data-loading', !t)
    ui.loading.hidden = Boolean(t)
    const before = axis.length
    axis = createAxis(t ?? { spans: [], marks: [], head: 0 }, kind)
    plan = arrange(t ?? { spans: [], marks: [], lanes: [] })
    if (all) view = whole()
    else if (app.at === null && view.to >= before * 0.999) shift(axis.length - before)
    labels()
    status()
    legend(t)
    draw()
  }

  const whole = () => ({ from: 0, to: axis.length * 1.01 })

  let labelled = '' // what is there: a label that has the focus keeps it
  function labels() {
    ui.space.style.height = `${plan.height}px`
    const now = JSON.stringify(plan.lanes.map((l) => [l.sessionId, l.agentType, l.depth, l.top, l.height]))
    if (now === labelled) return looked()
    labelled = now
    put(ui.labels, plan.lanes.map((lane) => h('button', {
      type: 'button', class: 'tl-label', 'data-test': 'lane', 'data-lane': lane.sessionId, title: `Look at ${plain(lane.sessionId)}`,
      'aria-pressed': String(lane.sessionId === (app.agent ?? app.session)), onclick: () => app.look(lane.sessionId),
      style: { top: `${lane.top}px`, height: `${lane.height}px`, 'padding-left': `${10 + Math.min(lane.depth, 6) * 12}px` },
    }, lane.depth > 0 ? h('span', { class: 'tl-branch' }) : null,
    h('span', { class: 'tl-name' }, line(lane.agentType || lane.sessionId, 40)),
    lane.depth > 0 ? h('span', { class: 'tl-id' }, line(lane.sessionId.replace(app.session, '…'), 60)) : null)))
  }

  function looked() {
    for (const label of ui.labels.children) label.setAttribute('aria-pressed', String(label.dataset.lane === (app.agent ?? app.session)))
  }

  // measure looks how much room there is. Only when that changes: to ask has
  // the browser lay the whole page out.
  function measure() {
    left = ui.scroll.getBoundingClientRect().left
    gutter = ui.labels.offsetWidth
    width = Math.max(1, ui.scroll.clientWidth - gutter)
    bodyHeight = ui.scroll.clientHeight
    element.style.setProperty('--gutter', `${gutter}px`)
    element.style.setProperty('--plot', `${width}px`)
  }

  function status() {
    const t = app.timeline
    setText(ui.head, String(app.head))
    put(ui.title, app.session === null ? null : [
      h('span', { class: 'title-id', title: plain(app.session) }, line(app.session, 80)),
      t ? h('span', { class: ['chip', tones[statusOf(t)]], 'data-test': 'session-status' }, statusOf(t)) : null,
    ])
  }

  // --- drawing

  function draw() {
    dirty = true
    if (!frame) frame = requestAnimationFrame(paint)
  }

  function follow() {
    if (!frame) frame = requestAnimationFrame(paint)
  }

  function paint() {
    frame = 0
    if (dirty) {
      dirty = false
      paintBlocks()
      paintRuler()
      overview.draw(painted)
    }
    paintPosition()
  }

  function paintBlocks() {
    const top = scrolled, bottom = top + bodyHeight
    const canvas = sized(ui.canvas, width, bodyHeight)
    ui.canvas.style.transform = `translate(${gutter}px, ${top}px)`
    const colour = colours(failures)
    canvas.clearRect(0, 0, width, bodyHeight)
    const fine = [], wide = [], moments = []
    for (const lane of plan.lanes) {
      if (lane.top > bottom || lane.top + lane.height < top) continue
      canvas.fillStyle = colour.border
      canvas.fillRect(0, Math.round(lane.top + lane.height - top) - 1, width, 1)
      for (const item of lane.spans) {
        if (hidden.has(kindOf(item.span))) continue
        const a = px(axis.left(item.span.from)), b = px(axis.x(item.span.open ? app.head : item.span.to))
        if (b < 0 || a > width) continue
        const y = lane.top + item.y
        if (y > bottom || y + item.height < top) continue
        ;(b - a < LEAST_BLOCK ? fine : wide).push({ span: item.span, a, b: Math.max(b, a + 2), y, height: item.height })
      }
      let last = -Infinity, lastStrong = -Infinity
      for (const mark of lane.marks) {
        const a = px(axis.x(mark.sequence))
        if (a < -8 || a > width + 8) continue
        const strong = strongMarks.has(mark.kind)
        if (a - (strong ? lastStrong : last) < LEAST_BLOCK) continue // it could not be distinguished from its neighbour
        last = a
        if (strong) lastStrong = a
        canvas.fillStyle = strong ? colour.bad : colour.borderStrong
        canvas.globalAlpha = strong ? 0.75 : 0.5
        canvas.fillRect(Math.round(a), lane.top - top + 2, 1, lane.height - 4)
        canvas.globalAlpha = 1
        moments.push({ mark, a, y: lane.top + PAD, strong })
      }
    }
    if (wide.length > MOST_BLOCKS) {
      wide.sort((p, q) => (q.b - q.a) - (p.b - p.a))
      fine.push(...wide.splice(MOST_BLOCKS))
    }
    for (const { span, a, b, y, height } of fine) {
      canvas.fillStyle = colour.of(span)
      canvas.globalAlpha = span.struck ? 0.35 : 0.9
      canvas.fillRect(a, y - top, b - a, height)
    }
    canvas.globalAlpha = 1
    for (const pause of axis.breaks) {
      const a = px(pause.from), b = px(pause.to)
      if (b < 0 || a > width || b - a < 14) continue
      canvas.fillStyle = colour.border
      for (let x = Math.max(a, 0) - (Math.max(a, 0) % 6); x < Math.min(b, width); x += 6) canvas.fillRect(x, 0, 1, bodyHeight)
    }
    keep(blocks, wide, (w) => w.span.id, makeBlock, placeBlock, ui.blocks)
    moments.sort((p, q) => q.strong - p.strong || p.a - q.a)
    const room = new Map()
    keep(ticks, moments.slice(0, MOST_MARKS), (m) => keyOf(m.mark), makeMark, (el, m) => {
      el.mark = m.mark // there may be news of it
      el.toggleAttribute('data-truncated', Boolean(m.mark.struck))
      const near = room.get(m.y) ?? []
      el.toggleAttribute('data-slim', near.some((x) => Math.abs(x - m.a) < 9))
      near.push(m.a)
      room.set(m.y, near)
      el.style.transform = `translate(${m.a - 6}px, ${m.y}px)`
    }, ui.blocks)
  }

  // keep has one element for each of the things that are in sight.
  function keep(pool, things, key, make, place, parent) {
    const gone = new Set(pool.keys())
    const fresh = []
    for (const thing of things) {
      const k = key(thing)
      let el = pool.get(k)
      if (!el) {
        el = make(thing)
        pool.set(k, el)
        fresh.push(el)
      }
      gone.delete(k)
      place(el, thing)
    }
    for (const k of gone) {
      pool.get(k).remove()
      pool.delete(k)
    }
    parent.append(...fresh)
  }

  function makeBlock({ span }) {
    return h('button', { type: 'button', tabindex: '-1', 'data-test': 'span', 'data-span': span.id },
      h('span', { class: 'sp-label' }), ' ', h('span', { class: 'sp-time' }))
  }

  function placeBlock(el, { span, a, b, y, height }) {
    const from = Math.max(a, -3), to = Math.min(b, width + 3), room = to - from
    const verdict = failures.verdict(span)
    if (el.span !== span || el.verdict !== verdict) {
      el.span = span
      el.verdict = verdict
      el.dataset.kind = span.kind
      el.dataset.from = span.from
      el.dataset.to = span.to
      el.className = `sp k-${span.kind === 'text' && span.callId ? 'arguments' : span.kind} s-${verdict ? 'failed' : span.status}`
      el.toggleAttribute('data-open', Boolean(span.open))
      el.toggleAttribute('data-truncated', Boolean(span.struck))
      const name = nameOf(span), about = describe(span, verdict)
      const took = span.endedAt > span.startedAt ? duration(span.endedAt - span.startedAt) : ''
      el.setAttribute('aria-label', `${name} ${took}${about.startsWith(name) ? about.slice(name.length) : `, ${about}`}, records ${span.from} to ${span.to}`)
      el.lastChild.textContent = took
      el.firstChild.textContent = name
      el.letters = name.length
    }
    el.toggleAttribute('data-small', room < LABEL_PAD + LETTER * Math.min(el.letters, LEAST_LETTERS))
    el.toggleAttribute('data-wide', room >= LABEL_PAD + LETTER * el.letters + DURATION)
    el.style.transform = `translate(${from}px, ${y}px)`
    el.style.width = `${Math.max(1, room - 1)}px`
    el.style.height = `${height}px`
  }

  function makeMark({ mark }) {
    const el = h('button', {
      type: 'button', tabindex: '-1', class: `mk m-${mark.kind}`, 'data-test': 'mark', 'data-kind': mark.kind, 'data-sequence': mark.sequence,
      'aria-label': `${mark.kind}${mark.label ? `: ${line(mark.label, 80)}` : ''}, record ${mark.sequence}`,
    })
    return el
  }

  function paintRuler() {
    const fits = ([x, label]) => x + LETTER * label.length + 5 < width // at the edge it would be cut off
    const steps = (kind === 'time' ? timeTicks() : recordTicks()).filter(fits)
    put(ui.ticks, steps.map(([x, label]) => h('span', { class: 'tl-tick', style: { transform: `translateX(${x}px)` } }, label)),
      axis.breaks.map((p) => [px((p.from + p.to) / 2), p]).filter(([x, p]) => x > 0 && x < width && px(p.to) - px(p.from) > 34)
        .map(([x, p]) => h('span', { class: 'tl-pause', style: { transform: `translateX(${x}px) translateX(-50%)` }, title: 'Nothing happened' }, duration(p.ms))))
  }

  // recordTicks are the sequences at round places of the view.
  function recordTicks() {
    const out = []
    const every = Math.max(1, nice((view.to - view.from) * 84 / width))
    let last = -Infinity
    for (let x = Math.ceil(view.from / every) * every; x <= Math.min(view.to, axis.length); x += every) {
      const p = px(x)
      if (p < 0 || p - last < 40) continue
      const s = axis.sequence(x)
      const round = Math.round(s / every) * every // if it lies near enough
      const near = round > 0 && Math.abs(px(axis.x(round)) - p) < 30 ? round : s
      if (near <= 0) continue
      out.push([px(axis.x(near)), String(near)])
      last = p
    }
    return out
  }

  function timeTicks() {
    const out = []
    const every = Math.max(1, niceTime((view.to - view.from) * 90 / width))
    const start = axis.timeAt(0)
    for (let x = Math.ceil(view.from / every) * every; x <= Math.min(view.to, axis.length); x += every) {
      out.push([px(x), `+${duration(axis.timeAt(x) - start)}`])
    }
    return out
  }

  function paintPosition() {
    roving()
    const at = app.effectiveAt()
    const x = px(axis.x(at))
    const seen = x >= -1 && x <= width + 1
    ui.playhead.hidden = !seen || !app.timeline
    ui.playhead.style.transform = `translateX(${Math.round(gutter + x)}px)`
    ui.future.style.transform = `translateX(${Math.min(width, Math.max(0, Math.round(x)))}px)` // what is beyond the edge is cut off
    ui.future.hidden = app.at === null
    const other = app.compareTo?.session === app.session && app.timeline ? px(axis.x(app.compareTo.at)) : -1
    ui.other.hidden = !(other >= 0 && other <= width)
    ui.other.style.transform = `translateX(${Math.round(gutter + other)}px)`
    setText(ui.other.firstChild, String(app.compareTo?.at ?? ''))
    setText(ui.flag, String(at))
    ui.flag.toggleAttribute('data-left', x > width - 60)
    setText(ui.position, String(at))
    const when = app.timeline ? axis.time(at) : 0
    setText(ui.when, when ? moment(when).slice(11) : '')
    ui.when.title = when ? moment(when) : ''
    const live = app.at === null
    followed(live)
    element.toggleAttribute('data-past', !live)
    const s = ui.scrubber
    s.setAttribute('aria-valuemax', String(app.head))
    s.setAttribute('aria-valuenow', String(at))
    s.setAttribute('aria-valuetext', `record ${number(at)} of ${number(app.head)}${live ? ', live' : ''}`)
    overview.drawPosition()
  }

  // followed says whether the session still grows, and whether the page follows it.
  function followed(live) {
    const status = app.timeline && statusOf(app.timeline)
    const grows = status === 'active' || status === 'paused'
    const away = app.connection.state === 'retrying'
    const name = !live ? (grows ? 'Go live' : 'Go to the end') : away ? 'Offline' : !status ? 'Loading' : grows ? 'Live' : status === 'interrupted' ? 'Interrupted' : 'Ended'
    const key = `${name} ${live}`
    if (ui.live.dataset.is === key) return
    ui.live.dataset.is = key
    setText(ui.live.lastChild, name)
    ui.live.setAttribute('aria-pressed', String(live))
    ui.live.toggleAttribute('data-live', name === 'Live')
    ui.live.title = !live ? 'Show the last record, and those that come (space)' : name === 'Live' ? 'The page follows the session. Stay at this record (space)' : `The last record is shown${grows ? '' : '; the session grows only with another message or a resume'} (space)`
  }

  // roving lets tab reach one block: the last that begins at the position.
  let reachable = null
  function roving() {
    const at = app.effectiveAt()
    let best = null
    for (const el of blocks.values()) {
      if (el.span.from <= at && (!best || el.span.from >= best.span.from)) best = el
    }
    best ??= blocks.values().next().value ?? null
    if (best === reachable) return
    reachable?.setAttribute('tabindex', '-1')
    best?.setAttribute('tabindex', '0')
    reachable = best
  }

  // --- the view

  function show(from, to) {
    const least = Math.min(LEAST_VIEW[kind], axis.length)
    const size = Math.min(Math.max(to - from, least), whole().to)
    const middle = (from + to) / 2
    from = Math.min(Math.max(0, middle - size / 2), whole().to - size)
    view = { from, to: from + size }
    all = size >= whole().to * 0.999
    draw()
  }

  function shift(by) { show(view.from + by, view.to + by) }

  // zoom makes the view so many times as long, around a place on the screen.
  function zoom(by, p = px(axis.x(app.effectiveAt()))) {
    if (!(p >= 0 && p <= width)) p = width / 2
    const x = unpx(p)
    const size = Math.min(Math.max((view.to - view.from) * by, Math.min(LEAST_VIEW[kind], axis.length)), whole().to)
    const from = Math.min(Math.max(0, x - p / width * size), whole().to - size)
    view = { from, to: from + size }
    all = size >= whole().to * 0.999
    draw()
  }

  function fit() {
    all = true
    view = whole()
    draw()
  }

  // reveal moves the view so that the position is in it.
  function reveal() {
    const x = px(axis.x(app.effectiveAt()))
    if (all || (x >= 0 && x <= width)) return
    const size = view.to - view.from, at = axis.x(app.effectiveAt())
    show(at - size * (x < 0 ? 0.15 : 0.85), at + size * (x < 0 ? 0.85 : 0.15))
  }

  function toggleAxis(to = kind === 'time' ? 'record' : 'time') {
    const [from, until] = [axis.sequence(view.from), axis.sequence(view.to)]
    kind = to
    remember(AXIS, kind)
    axis = createAxis(app.timeline ?? { spans: [], marks: [], head: 0 }, kind)
    if (all) view = whole()
    else show(axis.x(from), axis.x(until))
    painted++
    for (const b of ui.axes.children) b.setAttribute('aria-pressed', String(b.dataset.axis === kind))
    draw()
  }

  // --- the hand

  const plotX = (event) => event.clientX - left - gutter

  pointers(ui.scrubber, {
    drag: (event) => app.scrub(axis.sequence(unpx(Math.min(Math.max(0, plotX(event)), width))), true),
  })
  pointers(ui.scroll, {
    threshold: 4,
    move: (dx) => shift(-dx / width * (view.to - view.from)),
    pinch: (by, x) => zoom(by, x - left - gutter),
    click(event) {
      const block = event.target.closest?.('.sp'), mark = event.target.closest?.('.mk')
      if (event.target.closest?.('.tl-label')) return
      if (mark) app.go({ at: mark.mark.sequence })
      else if (block) choose(block.span, event.shiftKey)
      else if (plotX(event) >= 0) app.go({ at: axis.sequence(unpx(plotX(event))) })
    },
  })

  // choose goes to where a block has ended; from there, and with shift, to where
  // it begins.
  function choose(span, begin) {
    app.look(span.lane)
    const end = span.open ? app.head : span.to
    app.go({ at: begin || app.at === end ? span.from : end })
  }

  ui.scroll.addEventListener('dblclick', (event) => {
    const span = event.target.closest?.('.sp')?.span
    if (!span) return
    const a = axis.left(span.from), b = axis.x(span.open ? app.head : span.to)
    show(a - (b - a) * 0.1, b + (b - a) * 0.1)
  })
  ui.scroll.addEventListener('click', (event) => { // by keys, or what reads the page out
    const el = event.detail === 0 ? event.target.closest?.('.sp, .mk') : null
    if (el?.mark) app.go({ at: el.mark.sequence })
    else if (el) choose(el.span, event.shiftKey)
  })

  for (const place of [ui.scrubber, ui.scroll, ui.over]) {
    place.addEventListener('wheel', (event) => {
      const scrolls = place === ui.scroll && plan.height > bodyHeight + 1
      const unit = event.deltaMode === 1 ? 16 : 1
      if (event.ctrlKey || event.metaKey) {
        zoom(Math.exp(event.deltaY * unit * 0.008), plotX(event))
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        shift((event.deltaX || event.deltaY) * unit / width * (view.to - view.from))
      } else if (scrolls) {
        return
      } else {
        zoom(Math.exp(event.deltaY * unit * 0.0025), plotX(event))
      }
      event.preventDefault()
    }, { passive: false })
  }
  ui.scroll.addEventListener('scroll', () => {
    scrolled = ui.scroll.scrollTop
    draw()
  }, { passive: true })

  tooltip(ui, element, (el) => el.span ? aboutSpan(el.span, el.verdict) : aboutMark(el.mark))
  resizable(ui.handle, ui.scroll)
  const explain = (yes) => {
    ui.legend.hidden = !yes
    ui.explain.setAttribute('aria-expanded', String(yes))
  }
  explain(remembered(LEGEND) ? remembered(LEGEND) === 'shown' : !matchMedia('(max-width: 760px)').matches)
  ui.explain.addEventListener('click', () => {
    explain(ui.legend.hidden)
    remember(LEGEND, ui.legend.hidden ? 'hidden' : 'shown')
  })

  ui.live.addEventListener('click', () => app.go({ at: app.at === null ? app.head : null }))
  ui.zoomIn.addEventListener('click', () => zoom(0.6))
  ui.zoomOut.addEventListener('click', () => zoom(1 / 0.6))
  ui.fit.addEventListener('click', fit)
  ui.axes.addEventListener('click', (event) => {
    const to = event.target.closest('button')?.dataset.axis
    if (to) toggleAxis(to)
  })
  toggleAxis(kind)

  app.on('session', () => {
    all = true
    ui.scroll.scrollTop = 0
    changed()
  })
  app.on('timeline', changed)
  app.on('agent', looked)
  app.on('live', follow)
  for (const event of ['theme', 'failures']) {
    app.on(event, () => {
      painted++
      draw()
    })
  }
  app.on('at', () => {
    reveal()
    follow()
  })
  const sizes = new ResizeObserver(() => {
    measure()
    overview.resized()
    draw()
  })
  for (const part of [element, ui.scroll, ui.labels]) sizes.observe(part)
  measure()
  const move = bindKeys(app, () => ({ zoom, fit, toggleAxis }))
  ui.previous.addEventListener('click', (event) => move(event.shiftKey ? 'step' : 'record', -1))
  ui.next.addEventListener('click', (event) => move(event.shiftKey ? 'step' : 'record', 1))
  changed()
}

const strongMarks = new Set(['takeover', 'rollback', 'abort', 'error', 'truncated'])
const keyOf = (m) => `${m.sequence} ${m.kind} ${m.lane}`

function aboutSpan(s, verdict) {
  const rows = [
    ['records', s.from === s.to ? number(s.from) : `${number(s.from)} to ${s.open ? 'now' : number(s.to)}${s.records > 1 ? ` (${number(s.records)})` : ''}`],
    ['began', moment(s.startedAt)],
    ['took', s.endedAt > s.startedAt ? duration(s.endedAt - s.startedAt) + (s.open ? ' so far' : '') : ''],
    ['characters', s.chars ? number(s.chars) : ''],
    ['call', line(s.callId, 60)],
    ['node', line(s.node, 60)],
    ['error', line(s.error, 300)],
    ['cause', line(s.cause, 300)],
    ['truncated', s.struck ? `by record ${number(s.struckBy)}` : ''],
  ]
  return [h('strong', {}, describe(s, verdict)), table(rows)]
}

function aboutMark(m) {
  return [h('strong', {}, m.kind), m.label ? h('p', {}, line(m.label, 200)) : null, table([
    ['record', number(m.sequence)], ['at', moment(m.at)], ['id', line(m.id, 80)],
    ['truncated', m.struck ? `by record ${number(m.struckBy)}` : ''],
  ])]
}

const table = (rows) => h('dl', {}, rows.filter(([, v]) => v).map(([k, v]) => [h('dt', {}, k), h('dd', {}, v)]))

// colours are the theme's, for what is painted.
let read = null
function colours(failures) {
  if (read) return read
  const style = getComputedStyle(document.documentElement)
  const get = (name) => style.getPropertyValue(`--${name}`).trim()
  const kinds = {
    run: get('k-run'), step: get('k-step'), user: get('k-user'), reasoning: get('k-reasoning'), text: get('k-text'), tool: get('k-tool'),
    approval: get('k-approval'), client_tool: get('k-client'), child: get('k-child'), suspended: get('k-suspended'), custom: get('k-custom'), outside: get('k-custom'),
  }
  const failed = get('k-bad')
  read = {
    border: get('border'), borderStrong: get('border-strong'), bad: get('bad'),
    of: (span) => span.status === 'failed' || span.status === 'denied' || failures.verdict(span) ? failed : kinds[span.kind] ?? kinds.custom,
  }
  queueMicrotask(() => { read = null })
  return read
}

function sized(canvas, width, height) {
  const scale = devicePixelRatio || 1
  const w = Math.round(width * scale), hgt = Math.round(height * scale)
  if (canvas.width !== w || canvas.height !== hgt) {
    canvas.width = w
    canvas.height = hgt
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  const context = canvas.getContext('2d')
  context.setTransform(scale, 0, 0, scale, 0, 0)
  return context
}

// nice is the round number from which on ticks stand wide enough.
function nice(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)))
  return [1, 2, 5, 10].map((m) => m * power).find((n) => n >= least)
}

const timeSteps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000,
  7_200_000, 21_600_000, 43_200_000, 86_400_000]
const niceTime = (least) => timeSteps.find((n) => n >= least) ?? nice(least / 86_400_000) * 86_400_000

function remembered(key) {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

function remember(key, value) {
  try {
    localStorage.setItem(key, value)
  } catch { /* then it lasts until the page is left */ }
}

// tooltip describes the block or mark under the pointer, or in focus.
function tooltip(ui, element, about) {
  let of = null
  const hide = () => {
    of = null
    ui.tip.hidden = true
  }
  const showFor = (el, x) => {
    if (el !== of) {
      of = el
      put(ui.tip, about(el))
      ui.tip.hidden = false
    }
    const box = el.getBoundingClientRect(), tip = ui.tip.getBoundingClientRect()
    const left = Math.min(Math.max(8, x + 12), innerWidth - tip.width - 8)
    const below = box.bottom + 8 + tip.height < innerHeight
    ui.tip.style.transform = `translate(${left}px, ${below ? box.bottom + 8 : Math.max(8, box.top - tip.height - 8)}px)`
  }
  ui.scroll.addEventListener('pointermove', (event) => {
    const el = event.pointerType === 'touch' || event.buttons ? null : event.target.closest?.('.sp, .mk')
    if (el) showFor(el, event.clientX)
    else hide()
  })
  ui.scroll.addEventListener('pointerleave', hide)
  ui.scroll.addEventListener('scroll', hide, { passive: true })
  ui.scroll.addEventListener('focusin', (event) => {
    const el = event.target.closest?.('.sp, .mk')
    if (el?.matches(':focus-visible')) showFor(el, el.getBoundingClientRect().left)
  })
  ui.scroll.addEventListener('focusout', hide)
  element.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide() })
}

// resizable lets the lanes be given more or less room.
function resizable(handle, scroll) {
  const set = (height) => {
    height = Math.round(Math.min(Math.max(56, height), innerHeight * 0.7))
    scroll.style.setProperty('--lanes', `${height}px`)
    handle.setAttribute('aria-valuenow', String(height))
    remember(HEIGHT, height)
  }
  const stored = Number(remembered(HEIGHT))
  if (stored > 0) set(stored)
  pointers(handle, { move: (_, dy) => set(scroll.clientHeight + dy) })
  handle.addEventListener('keydown', (event) => {
    const by = { ArrowUp: -24, ArrowDown: 24 }[event.key]
    if (!by) return
    event.preventDefault()
    set(scroll.clientHeight + by)
  })
}

function build(element) {
  const button = (test, label, ...children) => h('button', { type: 'button', class: 'quiet', 'data-test': test, 'aria-label': label, title: label }, ...children)
  const ui = {
    title: document.getElementById('title'),
    position: h('output', { class: 'tl-position', 'data-test': 'position', 'aria-label': 'Position' }),
    head: h('span', { 'data-test': 'head', title: 'The number of the session’s last record. Sessions share the numbers, so that a session does not have all of them' }),
    when: h('span', { class: 'tl-when mono' }),
    live: h('button', { type: 'button', class: 'tl-live', 'data-test': 'live-toggle', 'aria-pressed': 'true' }, h('span', { class: 'tl-dot' }), h('span', {}, 'Loading')),
    axes: h('div', { class: 'tl-axes', role: 'group', 'aria-label': 'Axis' },
      h('button', { type: 'button', 'data-axis': 'record', 'data-test': 'axis-record' }, 'Records'),
      h('button', { type: 'button', 'data-axis': 'time', 'data-test': 'axis-time' }, 'Time')),
    loading: h('p', { class: 'tl-loading muted', role: 'status' }, 'Loading the timeline…'),
    explain: h('button', { type: 'button', class: 'quiet', 'data-test': 'legend-toggle', 'aria-expanded': 'true', 'aria-controls': 'legend', title: 'What the colours and the marks mean' }, 'Legend'),
    legend: h('div', { id: 'legend', class: 'tl-legend', 'data-test': 'legend', role: 'group', 'aria-label': 'Legend' }),
    previous: button('previous', 'One record back (←)', icon('back')),
    next: button('next', 'One record on (→)', icon('next')),
    zoomOut: button('zoom-out', 'Zoom out (−)', icon('minus')),
    zoomIn: button('zoom-in', 'Zoom in (+)', icon('plus')),
    fit: button('zoom-fit', 'Show all (0)', icon('fit')),
    over: h('div', { class: 'tl-over', 'data-test': 'overview' }),
    scrubber: h('div', {
      class: 'tl-ruler', role: 'slider', tabindex: '0', 'data-test': 'scrubber', 'aria-label': 'Position in the session', 'aria-orientation': 'horizontal',
      'aria-valuemin': '0', 'aria-valuemax': '0', 'aria-valuenow': '0',
    }),
    ticks: h('div', { class: 'tl-ticks' }),
    scroll: h('div', { class: 'tl-scroll' }),
    space: h('div', { class: 'tl-space' }),
    labels: h('div', { class: 'tl-labels' }),
    canvas: h('canvas', { class: 'tl-canvas', 'aria-hidden': 'true' }),
    blocks: h('div', { class: 'tl-blocks' }),
    future: h('div', { class: 'tl-future', hidden: true }),
    playhead: h('div', { class: 'tl-playhead', 'aria-hidden': 'true' }),
    other: h('div', { class: 'tl-playhead tl-other', 'aria-hidden': 'true', hidden: true }, h('span', { class: 'tl-flag' })), // what is compared
    flag: h('span', { class: 'tl-flag' }),
    handle: h('div', {
      class: 'tl-handle', role: 'separator', tabindex: '0', 'aria-orientation': 'horizontal', 'aria-label': 'Height of the timeline', 'aria-valuemin': '56', 'aria-valuenow': '0',
    }),
    tip: h('div', { class: 'tl-tip', role: 'tooltip', hidden: true }),
  }
  ui.playhead.append(ui.flag)
  ui.scrubber.append(ui.ticks)
  ui.space.append(ui.loading, ui.canvas, ui.blocks, ui.future, ui.labels)
  ui.scroll.append(ui.space)
  put(element,
    h('div', { class: 'tl-bar' },
      ui.live,
      h('span', { class: 'tl-where' }, ui.previous, h('span', {}, ui.position, h('span', { class: 'muted' }, ' / '), ui.head), ui.next),
      ui.when, h('span', { class: 'grow' }),
      ui.explain, ui.axes, h('span', { class: 'tl-zoom' }, ui.zoomOut, ui.fit, ui.zoomIn)),
    ui.over,
    h('div', { class: 'tl-body' }, ui.scrubber, ui.scroll, ui.other, ui.playhead),
    ui.legend,
    ui.handle)
  document.body.append(ui.tip)
  return ui
}
