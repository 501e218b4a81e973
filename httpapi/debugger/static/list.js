// The list of sessions: search, filters, and what each of them does right now.
// Of a list of any length only the rows in sight exist, and only they are asked
// about again.

import { sessionPath } from './api.js'
import { ago, around, line, money, number, plain, short } from './format.js'
import { builtIn, h, icon, put, reconcile, setText } from './dom.js'
import { isLane } from './labs.js'
import { createPages } from './pages.js'
import { statusOf } from './states.js'

const ROW = 58, HIT_ROW = 86 // px
const PAGE = 100
const POLL_MS = 2000
const SEARCH_MS = 250
const MOST_IDS = 1000 // sessions whose ids are searched
const USAGE_MS = 10_000 // between two looks at what a session has used
const LAB = 'lab', LANES = 'lab-lane' // the agent types of labs, and of their lanes
const statuses = ['active', 'paused', 'interrupted', 'completed', 'failed']

export function mount(element, app) {
  const filter = { status: '', agentType: '', userId: '', tag: '' }
  let sort = 'updated'
  let pages = createPages(PAGE)
  let found = null // of a search: their own rows
  let hits = { words: [], all: [], kind: '' } // what the search has found in sessions, and which kind of it is shown
  let generation = 0, failure = null
  const usage = new Map() // by session

  const ui = build()

  // --- asking

  async function load(number) {
    const now = generation
    let got
    try {
      got = await app.api.get('/sessions', { offset: number * PAGE, limit: PAGE, sort, ...wanted() })
    } catch (err) {
      if (now !== generation) return
      if (err.status !== 501 || sort !== 'updated') throw err
      sort = 'id' // a server without read models knows no other order
      ui.sort.value = sort
      ui.sort.disabled = true
      return load(number)
    }
    if (now !== generation) return
    const items = filter.agentType === LANES ? got.items : got.items.filter((s) => !isLane(s.sessionId))
    pages.set(number, held() ? keep(pages.get(number), items) : items, got.total)
    failure = null
    agents(got.items)
  }

  // wanted is the filter as the route has it: a session that waits is active there, and its stream paused.
  const wanted = () => (filter.status === 'active' || filter.status === 'paused' ? { ...filter, status: 'active', streamStatus: filter.status } : filter)

  // held: rows stay where they are while the pointer is on one.
  const held = () => ui.scroll.matches(':hover') && matchMedia('(hover: hover)').matches || ui.scroll.contains(document.activeElement)

  // keep shows what is new of the sessions where they are.
  function keep(before, now) {
    if (!before || before.length !== now.length) return now
    const all = new Map(now.map((s) => [s.sessionId, s]))
    return before.every((s) => all.has(s.sessionId)) ? before.map((s) => all.get(s.sessionId)) : now
  }

  const asking = new Set() // pages that are on their way, or were refused just now
  async function want(number, again) {
    if (asking.has(number) || (pages.get(number) && !again)) return
    asking.add(number)
    const now = generation
    try {
      await load(number)
    } catch (err) {
      failure = err
      draw()
      await new Promise((resolve) => setTimeout(resolve, POLL_MS)) // to draw a row that is missing asks for it
    }
    if (now !== generation) return // asking is another list's
    asking.delete(number)
    draw()
  }

  // row is how high a row is: what was found is shown with the text around it.
  const row = () => (found ? HIT_ROW : ROW)

  // inSight are the indices of the rows that are.
  function inSight() {
    const first = Math.max(0, Math.floor(ui.scroll.scrollTop / row()) - 2)
    const last = Math.ceil((ui.scroll.scrollTop + ui.scroll.clientHeight) / row()) + 2
    return [first, Math.min(last, (found ? found.length : pages.count()) - 1)]
  }

  function poll() {
    if (document.hidden || !element.offsetParent) return
    if (found) return
    const [first, last] = inSight()
    for (let p = first > 0 ? pages.place(first).page : 0; p <= pages.place(Math.max(0, last)).page; p++) want(p, true)
  }

  function anew() {
    generation++
    asking.clear()
    pages = createPages(PAGE)
    usage.clear()
    ui.scroll.scrollTop = 0
    want(0, true)
  }

  // agents offers those that there are.
  const known = new Set()
  function agents(items) {
    const before = known.size
    for (const s of items) known.add(s.agentType)
    if (known.size === before) return
    const now = ui.agent.value
    put(ui.agent, h('option', { value: '' }, 'Any agent'), [...known].filter(Boolean).sort().map((a) => h('option', { value: a }, line(a, 60))))
    ui.agent.value = now
  }
  async function declared() {
    try {
      agents(((await app.api.get('/readyz')).agents ?? []).map((agentType) => ({ agentType })))
    } catch { /* then those of the sessions must do */ }
    try {
      agents((await app.api.get('/sessions', { agentType: LAB, limit: 1 })).items)
    } catch { /* the same */ }
  }

  // --- searching

  let searching = 0, latest = 0
  async function search() {
    const text = ui.search.value.trim()
    const mine = ++latest
    if (text === '') {
      found = null
      hits = { ...hits, all: [], words: [] }
      draw()
      poll()
      return
    }
    const [ids, words] = await Promise.all([byID(text), byWords(text)])
    if (mine !== latest) return
    hits = { ...hits, ids, all: words, words: text.split(/[\s"]+/) }
    sift()
  }

  // sift shows what was found, of the kind that is chosen.
  function sift() {
    const is = (hit) => !hits.kind || (hits.kind === 'message' ? hit.kind === 'message' : hit.kind !== 'message')
    found = [...(hits.kind ? [] : hits.ids).map((s) => ({ session: s })), ...hits.all.filter(is).map((hit) => ({ hit }))]
    ui.scroll.scrollTop = 0
    draw()
  }

  async function byID(text) {
    const all = new Map()
    try {
      const exact = await app.api.get(sessionPath(text))
      all.set(exact.sessionId, exact)
    } catch { /* there is none */ }
    try {
      for (let offset = 0; offset < MOST_IDS; offset += 200) {
        const got = await app.api.get('/sessions', { offset, limit: 200, ...wanted() })
        for (const s of got.items) if ((!filter.status || statusOf(s) === filter.status) && s.sessionId.toLowerCase().includes(text.toLowerCase())) all.set(s.sessionId, s)
        if (!got.hasMore) break
      }
    } catch (err) {
      failure = err
    }
    return [...all.values()]
  }

  async function byWords(text) {
    try {
      return (await app.api.get('/search', { q: text, limit: 50, userId: filter.userId, agentType: filter.agentType })).items.filter((hit) => filter.agentType === LANES || !isLane(hit.rootSessionId || hit.sessionId))
    } catch (err) {
      if (err.status === 501 || err.status === 403 || err.status === 400) return [] // without words that can be looked for
      failure = err
      return []
    }
  }

  // --- drawing

  let frame = 0
  function draw() {
    if (!frame) frame = requestAnimationFrame(paint)
  }

  function paint() {
    frame = 0
    const count = found ? found.length : pages.count()
    ui.space.style.height = `${count * row()}px`
    element.toggleAttribute('data-found', Boolean(found))
    ui.kinds.hidden = !found || !hits.all.length
    const [first, last] = inSight()
    const indices = Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => first + n)
    reconcile(ui.space, indices, (i) => Object.assign(h('a', { class: 'ls-row' }), { index: i }), (el, i) => {
      const item = found ? found[i] : { session: pages.at(i) }
      if (!found && !item.session) want(pages.place(i).page)
      el.style.transform = `translateY(${i * row()}px)`
      fillRow(el, item)
    })
    const filtered = Object.values(filter).some(Boolean)
    setText(ui.count, pages.total === null && !found ? '' : found ? `${number(count)} found` : `${number(count)} session${count === 1 ? '' : 's'}`)
    ui.empty.hidden = count > 0
    put(ui.empty, failure && count === 0
      ? h('p', { 'data-test': 'error' }, failure.message, failure.status ? h('code', {}, failure.code) : '')
      : pages.total === null && !found ? h('p', {}, 'Loading…')
        : h('p', {}, found || filtered || pages.total ? 'Nothing fits.' : 'No sessions yet. Start one, and it appears here.'))
    ui.away.hidden = !failure || count === 0
    setText(ui.away, failure ? `${failure.message} The list may be out of date.` : '')
    document.body.toggleAttribute('data-none', pages.total === 0 && !filtered)
    wantUsage(first, last)
  }

  function fillRow(row, { session: s, hit }) {
    const content = hit ? JSON.stringify([hit, hits.words]) : JSON.stringify([s, usage.get(s?.sessionId)?.sum, ago(s?.updatedAt ?? 0), s?.sessionId === app.session])
    if (row.content === content) return
    row.content = content
    if (hit) {
      const root = hit.rootSessionId || hit.sessionId
      row.className = 'ls-row hit'
      row.removeAttribute('aria-current')
      row.href = `#/${encodeURIComponent(root)}@${hit.sequence}`
      for (const [k, v] of Object.entries({ 'data-test': 'search-hit', 'data-session': root })) row.setAttribute(k, v)
      put(row,
        h('span', { class: 'ls-top' }, h('span', { class: 'ls-id' }, line(hit.sessionId, 60)), h('span', { class: 'ls-ago' }, `#${hit.sequence}`)),
        h('span', { class: 'ls-low' }, h('span', { class: 'ls-tag' }, line(hit.toolName || hit.role || hit.kind, 24)), h('span', { class: 'grow' }), h('span', { class: 'ls-agent' }, line(hit.agentType, 40))),
        h('span', { class: 'ls-snippet' }, around(hit.snippet, hits.words).map((p) => (p.hit ? h('mark', {}, p.text) : p.text))))
      return
    }
    if (!s) {
      row.className = 'ls-row blank'
      row.removeAttribute('data-test')
      row.removeAttribute('href')
      put(row)
      return
    }
    const state = statusOf(s)
    const used = usage.get(s.sessionId)?.sum
    row.className = 'ls-row'
    row.href = `#/${encodeURIComponent(s.sessionId)}`
    row.setAttribute('data-test', 'session-row')
    row.setAttribute('data-session', s.sessionId)
    row.setAttribute('data-status', s.status)
    if (s.sessionId === app.session) row.setAttribute('aria-current', 'page')
    else row.removeAttribute('aria-current')
    row.title = plain(`${s.sessionId}\n${s.agentType}, ${state}${s.userId ? `\nuser ${s.userId}` : ''}${s.tags?.length ? `\n${s.tags.join(', ')}` : ''}`)
    put(row,
      h('span', { class: 'ls-top' },
        h('span', { class: 'ls-dot', 'data-state': state, 'data-executing': s.isExecuting, title: state }),
        h('span', { class: 'ls-id' }, line(s.sessionId, 80)),
        h('span', { class: 'ls-ago' }, ago(s.updatedAt))),
      h('span', { class: 'ls-low' },
        h('span', { class: 'ls-agent' }, line(s.agentType, 40)),
        h('span', { class: 'ls-state', 'data-state': state }, state),
        (s.tags ?? []).slice(0, 2).map((t) => h('span', { class: 'ls-tag' }, line(t, 20))),
        h('span', { class: 'grow' }),
        s.counts?.parked ? h('span', { class: 'ls-parked', title: 'Records that could not be used' }, `${s.counts.parked} parked`) : null,
        used ? h('span', { class: 'ls-used', title: `${number(used.tokens.total)} tokens${used.costUsd ? `, ${money(used.costUsd)}` : ''}` },
          used.costUsd ? money(used.costUsd) : used.tokens.total ? `${short(used.tokens.total)} tok` : '') : null))
  }

  // --- what they have used, of the rows in sight, one at a time

  let adding = false, offered = true
  async function wantUsage(first, last) {
    if (adding || !offered || found || document.hidden) return
    for (let i = first; i <= last; i++) {
      const s = pages.at(i)
      if (!s) continue
      const had = usage.get(s.sessionId)
      if (had && (had.head === s.headSequence || performance.now() - had.asked < USAGE_MS)) continue
      adding = true
      usage.set(s.sessionId, { ...had, head: s.headSequence, asked: performance.now() })
      try {
        const sum = (await app.api.get('/usage', { by: 'agent', sessionId: s.sessionId })).total
        usage.set(s.sessionId, { head: s.headSequence, asked: performance.now(), sum })
      } catch (err) {
        offered = err.status !== 501 && err.status !== 403
      }
      adding = false
      draw()
      return
    }
  }

  // --- the page

  function build() {
    const field = (name, label, test) => h('input', {
      type: 'text', placeholder: label, 'aria-label': label, 'data-test': test, autocomplete: 'off', spellcheck: 'false',
      oninput: later((event) => set(name, event.target.value.trim())),
    })
    const ui = {
      search: h('input', {
        type: 'search', placeholder: 'Search', 'aria-label': 'Search in sessions, or for an id', 'data-test': 'search', autocomplete: 'off', spellcheck: 'false',
        oninput: () => {
          clearTimeout(searching)
          searching = setTimeout(search, SEARCH_MS)
        },
        onkeydown: (event) => {
          if (event.key === 'Escape') {
            ui.search.value = ''
            search()
          } else if (event.key === 'ArrowDown' || event.key === 'Enter') {
            event.preventDefault()
            ui.space.querySelector('a[href]')?.focus()
          }
        },
      }),
      status: h('select', { 'aria-label': 'Status', 'data-test': 'filter-status', onchange: (event) => set('status', event.target.value) },
        h('option', { value: '' }, 'Any status'), statuses.map((s) => h('option', { value: s }, s))),
      agent: h('select', { 'aria-label': 'Agent', 'data-test': 'filter-agent', onchange: (event) => set('agentType', event.target.value) },
        h('option', { value: '' }, 'Any agent')),
      kinds: h('select', { 'aria-label': 'What is found', 'data-test': 'search-kind', hidden: true, onchange: (event) => {
        hits.kind = event.target.value
        sift()
      } }, h('option', { value: '' }, 'everything'), h('option', { value: 'message' }, 'messages'), h('option', { value: 'call' }, 'tool calls')),
      user: field('userId', 'User', 'filter-user'),
      tag: field('tag', 'Tag', 'filter-tag'),
      sort: h('select', {
        'aria-label': 'Order', 'data-test': 'sort', onchange: (event) => {
          sort = event.target.value
          anew()
        },
      }, h('option', { value: 'updated' }, 'latest first'), h('option', { value: 'id' }, 'by id')),
      count: h('span', { class: 'muted', 'data-test': 'session-count', role: 'status' }),
      away: h('p', { class: 'ls-away', role: 'status', hidden: true }),
      fresh: h('button', { type: 'button', class: 'quiet', 'data-test': 'new-session', onclick: begin }, icon('plus'), 'New session'),
      scroll: h('div', { class: 'ls-rows', tabindex: '-1' }),
      space: h('div', { class: 'ls-space' }),
      empty: h('div', { class: 'ls-empty', hidden: true }),
    }
    ui.scroll.append(ui.space, ui.empty)
    put(element,
      h('div', { class: 'list-head' },
        h('label', { class: 'ls-search' }, icon('search'), ui.search, h('kbd', { 'aria-hidden': 'true' }, '/')),
        h('div', { class: 'ls-filters' }, ui.status, ui.agent, ui.user, ui.tag),
        h('div', { class: 'list-count' }, ui.count, ui.kinds, ui.sort)), ui.away,
      ui.scroll, h('div', { class: 'ls-foot' }, ui.fresh))
    ui.scroll.addEventListener('scroll', draw, { passive: true })
    ui.scroll.addEventListener('keydown', (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
      const { index } = document.activeElement
      if (!by || index === undefined) return
      event.preventDefault()
      if (index + by < 0) ui.search.focus()
      else builtIn(ui.space, index + by)?.focus()
    })
    return ui
  }

  // begin shows the form that begins a session.
  function begin() {
    app.go({ session: null })
    document.body.toggleAttribute('data-new', true) // a phone has no room for the list beside it
    document.querySelector('[data-test="chat-input"]')?.focus()
  }

  function later(fn) {
    let timer = 0
    return (event) => {
      clearTimeout(timer)
      timer = setTimeout(() => fn(event), SEARCH_MS)
    }
  }

  function set(name, value) {
    if (filter[name] === value) return
    filter[name] = value
    anew()
    if (found) search()
  }

  new ResizeObserver(draw).observe(ui.scroll)
  document.addEventListener('visibilitychange', poll)
  app.on('session', draw)
  app.on('sessions', () => {
    offered = true
    anew()
    declared()
  })
  setInterval(poll, POLL_MS)
  want(0)
  declared()
}
