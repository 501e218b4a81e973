// The session at exactly one record: its conversation, its custom state and what
// has changed in it, what it waits for, what it has used, where it comes from.
//
// What is shown is always of the record that the heading names: while another
// one is on its way, the old one stays, under its own number.

import { showsLab } from './labs.js'
import { builtIn, h, put, reconcile, setText } from './dom.js'
import { duration, moment as timeOf, money, number, plain } from './format.js'
import { chip, items, place } from './conversation.js'
import { diff, prose, tree } from './json.js'
import { failure } from './dialog.js'
import { extras } from './extras.js'
import { sessionPath } from './api.js'
import { outsideOf } from './outside.js'
import { Latest, agentOf, drawing, sessionsOf, statesOf, statusOf, tones } from './states.js'

const REST_MS = 150 // the position rests: what takes a request more may be asked for
const LIVE_REST_MS = 400 // news of a session that runs comes more often
const QUICK_MS = 6 // what takes longer to show is not shown for every record that is scrubbed over
const SCRUB_MS = 120 // two moves within it are scrubbing
const MOST_ROWS = 100 // of a list of checkpoints or runs
const SLICE_MS = 4 // of building messages: then the page may draw a frame

export function mount(element, app) {
  const states = statesOf(app)
  let shown = null // {session, n, root}
  let compared = 'checkpoint' // what the custom state is compared with
  let rest = 0
  let took = 0, moved = 0, scrubbing = 0 // how long the last one took to be shown, when the position moved, the timer of a pause in that
  let atEnd = true // the conversation's end is in sight
  let reveal = false // what the record has made is brought into sight when it is shown
  let wanted = '' // what was asked for last
  let resets = 0 // what was asked for before the last one counts no more

  const label = h('strong', { class: 'mono', 'data-test': 'moment-position' })
  const what = h('span', { class: 'what' })
  const trouble = h('div', { class: 'trouble', hidden: true })
  const agents = h('div', { class: 'agents', role: 'group', 'aria-label': 'Agents of the session' })
  const list = h('div', { class: 'messages', role: 'log', 'aria-live': 'off', 'aria-label': 'Conversation', tabindex: '0' })
  const facts = h('div', { class: 'facts', tabindex: '0', 'aria-label': 'State' })
  const badge = h('span', { class: 'chip live', hidden: true, title: 'changes of the state' })
  const switcher = h('div', { class: 'pane-choice', role: 'group', 'aria-label': 'What is shown' }, ...[['conversation', 'Conversation'], ['facts', 'State']].map(([pane, name]) =>
    h('button', { type: 'button', 'data-pane': pane, 'data-test': `pane-${pane}`, onclick: () => choose(pane) }, name, pane === 'facts' && badge)))
  put(element, h('header', { class: 'head' }, h('span', { class: 'muted' }, 'At'), label, what, h('span', { class: 'grow' }), switcher), agents, trouble, h('div', { class: 'panes' }, list, facts))
  // Who scrolls up leaves the end; that the list has become smaller does not.
  let top = 0
  list.addEventListener('scroll', () => {
    if (list.scrollHeight - list.scrollTop - list.clientHeight < 60) atEnd = true
    else if (list.scrollTop < top) atEnd = false
    top = list.scrollTop
  }, { passive: true })
  // The timeline above it grows and shrinks, and a group is as high as it is once it is in sight.
  const sizes = new ResizeObserver(() => { if (atEnd) list.scrollTop = list.scrollHeight })
  sizes.observe(list)
  choose('conversation')

  function choose(pane) {
    element.dataset.pane = pane
    for (const b of switcher.children) b.setAttribute('aria-pressed', String(b.dataset.pane === pane))
  }

  const latest = new Latest(app, async ({ session, n }, last) => {
    const since = resets
    try {
      const root = await states.get(session, n)
      const outside = await outsideOf(app, session, n, root)
      const agent = app.agent
      const built = await prepare(agentOf(root, agent ?? session), root, outside)
      if (app.session !== session || resets !== since) return
      trouble.hidden = true
      const began = performance.now()
      show({ session, n, root, outside }, app.agent === agent ? built.messages : undefined)
      took = built.took + performance.now() - began
    } catch (err) {
      if (app.session !== session || !last()) return
      trouble.hidden = false
      put(trouble, h('p', {}, `Record ${n} can't be shown. `), failure(err), h('button', { type: 'button', onclick: want }, 'Try again'))
    } finally {
      if (last()) delete element.dataset.loading
    }
  })

  function want() {
    const n = app.effectiveAt()
    if (app.session === null || (app.at === null && !app.head) || showsLab(app)) return
    if (shown?.session === app.session && shown.n === n && !('loading' in element.dataset)) return
    const key = `${app.session} ${n} ${app.at === null}`
    if (key === wanted && 'loading' in element.dataset) return // it is on its way
    wanted = key
    element.dataset.loading = n
    clearTimeout(scrubbing)
    const now = performance.now()
    const scrubs = app.at !== null && took > QUICK_MS && (app.drags || now - moved < SCRUB_MS)
    moved = now
    if (scrubs) scrubbing = setTimeout(ask, SCRUB_MS, n)
    else ask(n)
  }

  function ask(n) {
    latest.ask({ session: app.session, n }, app.at === null ? app.session : '')
  }

  // prepare builds the messages of a state that the list does not have. A long conversation
  // takes many frames' time: the page draws between slices of the work.
  async function prepare(s, root, outside) {
    const messages = new Map()
    let began = performance.now(), took = 0
    for (const { key, group, build } of s && root.head ? items(app, root, s, outside) : []) {
      if (builtIn(builtIn(list, group), key)) continue
      messages.set(key, build())
      const now = performance.now()
      if (now - began < SLICE_MS) continue
      took += now - began
      await drawing()
      began = performance.now()
    }
    return { messages, took: took + performance.now() - began }
  }

  function show(next, built) {
    const another = shown?.session !== next.session
    shown = next
    if (another) list.replaceChildren()
    render(another, built)
    clearTimeout(rest)
    rest = setTimeout(rested, app.at === null ? LIVE_REST_MS : REST_MS)
  }

  function render(top, built = new Map()) {
    const { session, n, root, outside } = shown
    const s = agentOf(root, app.agent ?? session)
    Object.assign(element.dataset, { session, at: n, agent: s?.sessionId ?? app.agent })
    setText(label, `#${n}`)
    put(what, s && root.head ? heading(s) : '')
    keeping(agents, agents, () => put(agents, agentButtons(root, s)))
    const follows = top || atEnd
    if (s && root.head) sync(list, items(app, root, s, outside), built, (group) => sizes.observe(group))
    else put(list, h('p', { class: 'empty' }, root.head ? `The agent ${plain(app.agent)} had not started at #${n}.` : 'Nothing had happened yet.'))
    mark(n)
    const made = reveal && list.querySelector('.now')
    reveal = false
    if (made) made.scrollIntoView({ block: 'center' })
    else if (follows) list.scrollTop = list.scrollHeight
    renderFacts(root, s ?? root)
  }

  const heading = (s) => [
    chip(statusOf(s), tones[statusOf(s)]),
    h('span', { class: 'muted' }, [s.turnCount ? `turn ${s.turnCount}` : '', s.turn?.step ? `step ${s.turn.step.number}` : ''].filter(Boolean).join(', ')),
    h('time', { class: 'muted' }, timeOf(s.updatedAt)),
  ]

  function agentButtons(root, s) {
    const all = root.head ? sessionsOf(root) : []
    const lanes = new Map(all.map((a) => [a.session.sessionId, a]))
    for (const lane of app.timeline?.lanes ?? []) {
      if (!lanes.has(lane.sessionId)) lanes.set(lane.sessionId, { session: lane, depth: lane.depth, later: true })
    }
    if (lanes.size < 2) return null
    return [...lanes.values()].map(({ session: a, depth, later }) => h('button', {
      type: 'button', class: ['quiet', later && 'later'], 'aria-pressed': String(a.sessionId === s?.sessionId), 'data-test': 'agent', 'data-session': a.sessionId,
      title: plain(a.sessionId) + (later ? ', later' : ''), onclick: () => app.look(a.sessionId),
    }, depth ? '↳ '.repeat(Math.min(depth, 3)) : '', plain(a.agentType || a.sessionId)))
  }

  // mark shows which message the record has made.
  function mark(n) {
    for (const m of list.querySelectorAll('.now')) m.classList.remove('now')
    list.querySelector(`[data-sequence="${n}"]`)?.classList.add('now')
  }

  // Sections stay open or closed as they were left. What a closed one holds is
  // built when it is opened.
  const open = new Map([['state', true], ['error', true], ['output', true], ['waiting', true], ['usage', true], ['provenance', true], ['parked', true]])
  const section = (name, title, ...children) => {
    const box = h('details', { class: 'section', 'data-section': name, open: open.get(name) ?? false }, h('summary', {}, title))
    let built = false
    const build = () => {
      if (!built) box.append(h('div', {}, ...children.map((c) => (typeof c === 'function' ? c() : c))))
      built = true
    }
    if (box.open) build()
    box.addEventListener('toggle', () => {
      open.set(name, box.open)
      if (box.open) build()
    })
    return box
  }

  const custom = h('div', { 'data-test': 'state-tree' })
  const changes = h('span', { class: 'muted' })
  const basis = h('select', { 'aria-label': 'Compare the state with', onchange: () => { compared = basis.value; renderState(); rested() } },
    ...[['checkpoint', 'last checkpoint'], ['commit', 'last commit'], ['record', 'record before'], ['none', 'nothing']].map(([v, t]) => h('option', { value: v }, t)))
  const stateSection = section('state', 'State', h('div', { class: 'foot' }, changes, h('span', { class: 'grow' }), basis), custom)
  const others = h('div', {})
  const cost = h('span', { 'data-test': 'usage-cost' })
  put(facts, stateSection, others, extras(app))

  function renderFacts(root, s) {
    if (cost.dataset.of !== `${shown.session} ${shown.n}`) setText(cost, '…')
    renderState()
    keeping(others, facts, () => put(others, endOf(s), waiting(root), usage(root, s), provenance(root, s), checkpoints(s), runs(s), parked(root)))
  }

  // basisOf is the record that the custom state is compared with: 0 is before
  // everything, undefined none.
  function basisOf(s, n) {
    const before = (list, of) => list.map(of).filter((at) => at < n).at(-1) ?? 0
    switch (compared) {
      case 'checkpoint': return before(s.checkpoints ?? [], (c) => c.streamSequence)
      case 'commit': return s.committedAt < n ? s.committedAt : before([...(s.messages ?? []).map((m) => m.sequence), ...(s.checkpoints ?? []).map((c) => c.streamSequence)].sort((a, b) => a - b), (at) => at)
      case 'record': return n - 1
    }
    return undefined
  }

  let stateShown = '' // what the tree shows: it is not built again for nothing
  let stateAsked = 0 // of two requests the later one counts: another agent may be chosen meanwhile

  async function renderState(wait = false) {
    const now = shown
    const mine = ++stateAsked
    if (!now) return
    const s = agentOf(now.root, app.agent ?? now.session)
    const base = s ? basisOf(s, now.n) : undefined
    let old
    if (s && base !== undefined && (wait || states.has(now.session, base))) {
      try {
        old = agentOf(await states.get(now.session, base), s.sessionId)
        old = old && base ? old : { customState: undefined }
      } catch { /* retention may have removed it: then nothing is marked */ }
      if (shown !== now || stateAsked !== mine) return
    }
    // Before a session was there, nothing is a change to its first state.
    const list = old && old.customState !== undefined ? diff(old.customState, s.customState) : []
    setText(changes, !s || base === undefined ? '' : old === undefined ? '' : old.customState === undefined ? 'from its beginning' : `${list.length || 'no'} ${list.length === 1 ? 'change' : 'changes'} since #${base}`)
    badge.hidden = list.length === 0
    setText(badge, String(list.length))
    const is = JSON.stringify([s?.customState, list, base === undefined])
    if (is === stateShown) return
    stateShown = is
    put(custom, s ? tree(s.customState ?? null, { changes: list, open: 2 }) : h('p', { class: 'muted' }, 'none'))
  }

  // rested asks for what scrubbing leaves out.
  function rested() {
    if (!shown) return
    renderState(true)
    price()
  }

  const endOf = (s) => [
    s.error && section('error', 'Why it failed', h('div', { class: 'why' }, s.error.code && h('code', { class: 'code' }, plain(s.error.code)), h('span', { class: 'bad prose' }, plain(s.error.message)))),
    s.output !== undefined && section('output', 'Output', tree(s.output, { open: 2 })),
  ]

  function waiting(root) {
    const calls = sessionsOf(root).flatMap(({ session: s }) => (s.turn?.step?.calls ?? []).filter((c) => !c.done && c.pending).map((c) => ({ s, c })))
    if (!calls.length) return null
    return section('waiting', `Pending calls (${calls.length})`, calls.map(({ s, c }) => h('div', { class: 'io', 'data-test': 'moment-pending', 'data-call': c.toolCallId },
      h('code', { class: 'tool-name' }, plain(c.toolName)), chip(c.answer ? 'answered' : { approval: 'approval', client: 'client tool', child: 'sub-agent' }[c.pending.kind] ?? c.pending.kind),
      s !== root && h('span', { class: 'muted' }, plain(s.agentType)), h('span', { class: 'muted' }, `since ${timeOf(c.pending.createdAt)}`))))
  }

  function usage(root, s) {
    const all = sessionsOf(root).map((a) => a.session.usage ?? {})
    const sum = (of) => all.reduce((n, u) => n + (of(u) ?? 0), 0)
    const own = s.usage ?? {}
    const rows = [['prompt', (u) => u.tokens?.prompt], ['completion', (u) => u.tokens?.completion], ['reasoning', (u) => u.tokens?.reasoning], ['cached', (u) => u.tokens?.cached],
      ['model calls', (u) => u.modelCalls], ['tool calls', (u) => u.toolStats?.totalCalls], ['failed tool calls', (u) => u.toolStats?.failedCalls]]
    const several = all.length > 1
    return section('usage', 'Usage', h('table', { class: 'usage' },
      several && h('thead', {}, h('tr', {}, h('th', {}), h('th', {}, 'all agents'), h('th', {}, 'this one'))),
      h('tbody', {}, rows.filter(([name, of]) => sum(of) > 0 || name === 'prompt' || name === 'completion').map(([name, of]) => h('tr', {},
        h('th', { scope: 'row' }, name), h('td', { 'data-test': `usage-${name.replaceAll(' ', '-')}` }, number(sum(of))), several && h('td', {}, number(of(own) ?? 0)))),
      h('tr', {}, h('th', { scope: 'row' }, 'cost'), h('td', {}, cost), several && h('td', {})))))
  }

  // price asks what all of it has cost up to here.
  async function price() {
    const now = shown
    const key = `${now.session} ${now.n}`
    if (cost.dataset.of === key) return
    let text = 'no prices'
    try {
      const told = await app.api.get(sessionPath(now.session, 'diff'), { from: 0, to: now.n, only: 'spent' })
      if (typeof told.cost === 'number') text = money(told.cost)
      cost.title = told.unpriced?.length ? `Without a price: ${told.unpriced.map(plain).join(', ')}` : ''
    } catch (err) {
      text = 'not known'
      cost.title = err.message
    }
    if (shown !== now) return
    cost.dataset.of = key
    setText(cost, text)
  }

  function provenance(root, s) {
    const from = root.forkedFrom
    if (!from && !s.child && !root.userId && !root.tags?.length && (!root.claim || fences(root.claim))) return null
    const fact = (name, ...value) => h('div', { class: 'about' }, h('span', { class: 'muted' }, name), h('span', {}, ...value))
    return section('provenance', 'Where it comes from',
      from && fact('forked from', h('button', { type: 'button', class: 'place', 'data-test': 'forked-from', onclick: () => app.go({ session: from.sessionId, at: from.sequence }) }, `${plain(from.sessionId)} #${from.sequence}`)),
      from?.edits && fact('edited', [
        from.edits.message === undefined ? null : `message ${from.edits.message}`, from.edits.toolCallId && `the result of ${plain(from.edits.toolCallId)}`, from.edits.systemPrompt && 'the system prompt',
      ].filter(Boolean).join(', ')),
      root.systemPrompt !== undefined && fact('system prompt', prose(root.systemPrompt)),
      s.child && fact('called by', h('button', { type: 'button', class: 'place', onclick: () => app.look(s.child.parentSessionId) }, plain(s.child.parentSessionId)), ' ', h('code', {}, plain(s.child.callId))),
      root.userId && fact('user', plain(root.userId)),
      root.tags?.length ? fact('tags', root.tags.map((t) => [chip(t, 'muted'), ' '])) : null,
      root.metadata && fact('metadata', tree(root.metadata, { open: 1 })),
      root.claim?.node && !fences(root.claim) && fact('last claimed by', h('code', {}, plain(root.claim.node))))
  }

  const rows = (list, of) => () => h('div', { class: 'entries' }, list.slice(-MOST_ROWS).reverse().map(of), list.length > MOST_ROWS ? h('p', { class: 'muted' }, `and ${number(list.length - MOST_ROWS)} before`) : null)

  const checkpoints = (s) => s.checkpoints?.length ? section('checkpoints', `Checkpoints (${s.checkpoints.length})`, rows(s.checkpoints, (c) => h('div', { class: 'io' },
    place(app, c.streamSequence), h('span', {}, `step ${c.stepCount}, ${number(c.messageCount)} messages`), h('span', { class: 'grow' }), h('time', { class: 'muted' }, timeOf(c.timestamp).slice(11))))) : null

  const runs = (s) => s.runs?.length ? section('runs', `Runs (${s.runs.length})`, rows(s.runs, (r) => h('div', { class: ['io', r.struck && 'gone'] },
    place(app, r.startSequence || 1, `#${r.startSequence}`), chip(r.struck ? 'rolled back' : r.status, { running: 'live', completed: 'good', failed: 'bad' }[r.status]),
    h('span', { class: 'muted' }, `${r.mode}, ${r.stepCount} ${r.stepCount === 1 ? 'step' : 'steps'}${r.claims > 1 ? `, claimed ${r.claims} times` : ''}`),
    h('span', { class: 'grow' }), h('span', { class: 'muted' }, duration(r.completedAt - r.startedAt))))) : null

  const parked = (root) => root.parked?.length ? section('parked', `Records that could not be used (${root.parked.length})`, rows(root.parked, (p) => h('div', { class: 'io' },
    place(app, p.sequence), h('code', {}, plain(p.type)), h('span', {}, plain(p.reason))))) : null

  const loading = () => {
    put(list, app.session === null ? '' : skeleton())
    put(custom, app.session === null ? '' : h('p', { class: 'muted' }, 'Loading…'))
    put(others)
  }

  const forget = () => {
    clearTimeout(scrubbing)
    shown = null
    stateShown = ''
    wanted = ''
    resets++
    delete cost.dataset.of
  }
  app.on('reset', forget)
  app.on('session', () => {
    forget()
    trouble.hidden = true
    delete element.dataset.session
    delete element.dataset.at
    setText(label, '')
    put(what)
    put(agents)
    loading()
    want()
  })
  app.on('at', want)
  app.on('timeline', () => app.at === null && want())
  app.on('part', want)
  app.on('live', () => app.connection.state === 'live' && !trouble.hidden && want())
  app.on('reveal', () => {
    choose('conversation')
    reveal = true
    if (shown?.n === app.effectiveAt()) render()
  })
  app.on('failures', () => shown?.session === app.session && render()) // why calls failed
  app.on('agent', () => {
    if (!shown) return
    list.replaceChildren()
    stateShown = ''
    render(true)
    rested()
  })
  loading()
  want()
}

// fences: a rollback's claim only keeps others from writing; no node drives the session under it.
const fences = (claim) => claim.node === 'rollback' && claim.runId.startsWith('rollback-')

// skeleton stands where messages will be.
const skeleton = () => h('div', { class: 'skeleton', role: 'status' }, h('p', { class: 'muted' }, 'Loading the conversation…'), ...[60, 90, 75].map((width) => h('div', { style: { width: `${width}%` } })))

// keeping has what is in an element built again; the focus goes to what stands
// where it was, else to a place near by.
function keeping(element, near, build) {
  const had = element.contains(document.activeElement) ? [...element.querySelectorAll('button, summary')].indexOf(document.activeElement) : -2
  build()
  if (had < -1) return
  const now = [...element.querySelectorAll('button, summary')][had]
  ;(now ?? near).focus({ preventScroll: true })
}

// sync makes an element show a list of items, in their groups: what has a key
// that is there is left as it is. built are those that are already built.
function sync(element, list, built, begun) {
  const groups = Map.groupBy(list, (item) => item.group)
  reconcile(element, [...groups.keys()], () => {
    const box = h('div', { class: 'group' })
    begun(box)
    return box
  }, (box, group) => {
    const items = groups.get(group)
    reconcile(box, items.map(({ key }) => key), (key, i) => built.get(key) ?? items[i].build())
  })
}
