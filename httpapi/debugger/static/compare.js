// Two moments beside each other: of one session, or of two.

import { align } from './align.js'
import { h, put } from './dom.js'
import { duration, money, number, plain } from './format.js'
import { chip } from './conversation.js'
import { failure } from './dialog.js'
import { isBad, verdictOf } from './failures.js'
import { brief, diff, marked, prose, same, tree } from './json.js'
import { sessionPath } from './api.js'
import { Latest, statesOf } from './states.js'

// compareForm asks what is to be compared. Without a comparison it stands with
// the actions.
export function compareForm(element, app) {
  const from = h('input', { type: 'number', min: 0, 'data-test': 'compare-from', 'aria-label': 'From record' })
  const to = h('input', { type: 'number', min: 0, 'data-test': 'compare-to', 'aria-label': 'To record' })
  const names = h('datalist', { id: 'compare-sessions' })
  const session = h('input', { 'data-test': 'compare-session', list: 'compare-sessions', placeholder: 'this session', 'aria-label': 'With the session', autocomplete: 'off', spellcheck: 'false', onfocus: suggest })
  const typed = new Set()
  for (const input of [from, to, session]) input.addEventListener('input', () => typed.add(input))
  const trouble = h('div', {})
  put(element, h('form', { class: 'compare-form', onsubmit: async (e) => {
    e.preventDefault()
    put(trouble)
    try {
      const other = session.value.trim() || app.session
      const at = to.value === '' ? await headOf(other) : Number(to.value)
      app.go({ at: from.value === '' ? app.effectiveAt() : Number(from.value), compareTo: { session: other, at } })
    } catch (err) {
      put(trouble, failure(err))
    }
  } }, h('h2', {}, 'Compare'), h('label', {}, '#', from), h('span', { class: 'muted' }, 'with'), h('label', {}, '#', to), h('span', { class: 'muted' }, 'of'), session, names,
  h('button', { type: 'submit', 'data-test': 'compare-open' }, 'Compare')), trouble)

  const headOf = async (id) => (id === app.session && app.head ? app.head : (await app.api.get(sessionPath(id))).headSequence)

  async function suggest() {
    try {
      const found = await app.api.get('/sessions', { limit: 100 })
      put(names, found.items.map((s) => h('option', { value: s.sessionId })))
    } catch { /* an id can be typed */ }
  }

  // Unless the user has typed something else: from the checkpoint before the
  // position to it; or the compared range.
  function fill() {
    element.hidden = app.compareTo !== null && !element.hasAttribute('data-always')
    const n = app.effectiveAt()
    const before = (app.timeline?.marks ?? []).filter((m) => m.kind === 'checkpoint' && !m.struck && m.sequence < n).at(-1)?.sequence ?? 0
    const is = app.compareTo ? [n, app.compareTo.at, app.compareTo.session === app.session ? '' : app.compareTo.session] : [before, n, '']
    ;[from, to, session].forEach((input, i) => {
      if (!typed.has(input)) input.value = is[i]
    })
  }
  app.on('session', () => {
    typed.clear()
    fill()
  })
  app.on('at', () => {
    if (app.compareTo) typed.clear()
    fill()
  })
  app.on('timeline', fill)
  fill()
}

export function mount(element, app) {
  const states = statesOf(app)
  let shown = ''
  const form = h('div', { 'data-always': true })
  const body = h('div', { class: 'comparison' })
  const close = h('button', { type: 'button', class: 'quiet', 'data-test': 'compare-close', onclick: () => app.go({ compareTo: null }) }, 'Close')
  const swap = h('button', { type: 'button', class: 'quiet', 'data-test': 'compare-swap', onclick: () => {
    const { session, at } = app.compareTo
    app.go({ session, at, compareTo: { session: app.session, at: app.effectiveAt() } })
  } }, 'Swap')
  let filled = false

  const latest = new Latest(app, async ({ want, live }, last) => {
    try {
      const [found, before, after, whole] = await Promise.all([
        app.api.get('/compare', want), states.get(want.a, want.aAt), states.get(want.b, want.bAt),
        want.a === want.b ? app.api.get(sessionPath(want.a, 'diff'), { from: want.aAt, to: want.bAt }) : null])
      if (!still(want, live)) return
      put(body, comparison(app, found, before.customState, after.customState, whole?.patch))
      if (key() === keyOf(want)) element.dataset.ready = ''
    } catch (err) {
      if (last() && still(want, live)) put(body, h('div', { class: 'empty' }, failure(err), h('button', { type: 'button', onclick: () => { shown = ''; show() } }, 'Try again')))
    }
  })

  const keyOf = (want) => JSON.stringify(want)
  const wanted = () => ({ a: app.session, aAt: app.effectiveAt(), b: app.compareTo?.session, bAt: app.compareTo?.at })
  const key = () => (app.compareTo && app.session !== null ? keyOf(wanted()) : '')

  // still says whether an answer may be shown. A session that runs has a
  // further head by the time that it comes: what it says of the last one is shown.
  const still = (want, live) => key() === keyOf(live && app.at === null ? { ...want, aAt: app.head } : want)

  function show() {
    if (!app.compareTo || app.session === null) {
      if (filled) put(element)
      put(body)
      filled = false
      shown = ''
      delete element.dataset.ready
      return
    }
    if (!filled) {
      filled = true
      put(element, h('header', { class: 'head' }, form, swap, close), body)
    }
    if (app.at === null && !app.head) return // the head is not known yet
    if (shown === key()) return
    shown = key()
    delete element.dataset.ready
    if (!body.firstChild) put(body, h('p', { class: 'empty' }, 'Comparing…'))
    const want = wanted()
    latest.ask({ want, live: app.at === null }, app.at === null ? keyOf({ ...want, aAt: null }) : '')
  }
  compareForm(form, app)
  app.on('reset', () => { shown = '' })
  app.on('session', show)
  app.on('at', show)
  app.on('timeline', () => app.at === null && show())
  show()
}

function comparison(app, { a, b, common = 0, forkedFrom }, before, after, patch) {
  const changes = diff(before, after)
  const one = a.sessionId === b.sessionId
  const title = (side) => h('button', { type: 'button', class: 'place', title: 'Go there', onclick: () => app.go({ session: side.sessionId, at: side.sequence, compareTo: null }) },
    one ? `#${side.sequence}` : `${plain(side.sessionId)} #${side.sequence}`)
  return [
    forkedFrom ? h('p', { class: 'muted pad' }, `${plain((forkedFrom.sessionId === a.sessionId ? b : a).sessionId)} was forked from ${plain(forkedFrom.sessionId)} at #${forkedFrom.sequence}.`) : null,
    figures(a, b, title),
    steps(a.steps ?? [], b.steps ?? []),
    h('section', { 'data-test': 'diff-row', 'data-what': 'state', 'data-count': changes.length },
      h('h3', {}, `Custom state: ${changes.length ? `${number(changes.length)} ${changes.length === 1 ? 'difference' : 'differences'}` : 'the same'}`),
      tree(after ?? null, { changes, open: changes.length ? 1 : 0 })),
    calls(a, b),
    patch?.length ? everything(patch) : null,
    h('section', {}, h('h3', {}, 'Messages'), h('div', { class: 'sides titles' }, h('div', {}, title(a)), h('div', {}, title(b))), messages(a.messages ?? [], b.messages ?? [], common)),
  ]
}

function figures(a, b, title) {
  const used = (of) => (s) => of(s.usage ?? {})
  const rows = [
    ['status', (s) => s.status, plain],
    ['messages', (s) => s.messages?.length ?? 0, number],
    ['tool calls', (s) => s.toolCalls?.length ?? 0, number],
    ['steps', (s) => s.steps?.length ?? 0, number],
    ['prompt tokens', used((t) => t.prompt ?? 0), number],
    ['completion tokens', used((t) => t.completion ?? 0), number],
    ['cost', (s) => s.cost, (v) => (v === undefined || v === null ? 'no prices' : money(v))],
    ['time', (s) => s.durationMs, (v) => duration(v ?? 0)],
  ]
  const head = h('thead', {}, h('tr', {}, h('td', {}), h('th', { scope: 'col' }, title(a)), h('th', { scope: 'col' }, title(b)), h('td', {})))
  return h('table', { class: 'figures' }, head, h('tbody', {}, rows.map(([name, of, show]) => {
    const [x, y] = [of(a), of(b)]
    const delta = typeof x === 'number' && typeof y === 'number' && x !== y
    return h('tr', { class: x === y ? '' : 'differs', 'data-test': 'diff-row', 'data-what': name },
      h('th', { scope: 'row' }, name), h('td', {}, show(x)), h('td', {}, show(y)), h('td', { class: 'muted' }, delta ? `${y > x ? '+' : '−'}${show(Math.abs(y - x))}` : ''))
  })))
}

const mostOperations = 1000 // that are listed

// everything lists what leads from one state to the other, runs, usage and
// sub-agents too.
const everything = (patch) => h('details', { class: 'steps', 'data-test': 'patch' }, h('summary', {}, `The whole state: ${number(patch.length)} ${patch.length === 1 ? 'operation' : 'operations'}`),
  h('ul', { class: 'operations' }, patch.slice(0, mostOperations).map((p) => h('li', {}, chip(p.op, { add: 'good', remove: 'bad' }[p.op] ?? 'warn'), h('code', {}, plain(p.path || '/')),
    p.from ? ['from ', h('code', {}, plain(p.from))] : null, p.value === undefined ? null : h('span', { class: 'muted' }, plain(brief(p.value))))),
  patch.length > mostOperations ? h('li', { class: 'muted' }, `and ${number(patch.length - mostOperations)} more`) : null))

// steps sets the steps beside each other, by turn and number.
function steps(a, b) {
  const key = (s) => `${s.turn}.${s.step}`
  const [left, right] = [a, b].map((list) => new Map(list.map((s) => [key(s), s])))
  const all = [...new Map([...a, ...b].map((s) => [key(s), s])).values()].sort((x, y) => x.turn - y.turn || x.step - y.step)
  if (!all.length) return null
  const cells = (s) => [h('td', {}, s ? duration(s.durationMs) : ''), h('td', { class: 'muted' }, s ? `${number((s.usage?.prompt ?? 0) + (s.usage?.completion ?? 0))} tokens` : '')]
  return h('details', { class: 'steps' }, h('summary', {}, `Steps: ${number(a.length)} and ${number(b.length)}`), h('table', { class: 'figures' }, h('tbody', {}, all.map((s) =>
    h('tr', {}, h('th', { scope: 'row' }, `turn ${s.turn}, step ${s.step}`), cells(left.get(key(s))), cells(right.get(key(s))))))))
}

const mostAlike = 200 // calls without a difference that are shown

// calls says which tool calls stand differently.
function calls(a, b) {
  // A sub-agent's session is named after its root's.
  const keyed = ({ sessionId: root, toolCalls = [] }) => new Map(toolCalls.map((c) =>
    [`${c.sessionId.startsWith(root) ? c.sessionId.slice(root.length) : c.sessionId} ${c.toolCallId}`, c]))
  const [left, right] = [keyed(a), keyed(b)]
  const all = [...new Set([...left.keys(), ...right.keys()])].map((k) => [left.get(k), right.get(k)])
  const differ = all.filter(([x, y]) => !x || !y || x.toolName !== y.toolName || !same(x.arguments, y.arguments) || x.status !== y.status || !same(x.result, y.result) || x.error !== y.error)
  const alike = all.filter((pair) => !differ.includes(pair)).map(([x]) => x)
  if (!all.length) return null
  return h('section', {}, h('h3', {}, `Tool calls: ${differ.length ? `${number(differ.length)} ${differ.length === 1 ? 'differs' : 'differ'}` : 'the same'}`),
    alike.length ? h('details', { class: 'common' }, h('summary', {}, `${number(alike.length)} ${alike.length === 1 ? 'call is' : 'calls are'} the same`), alike.slice(0, mostAlike).map(callOf), alike.length > mostAlike ? h('p', { class: 'muted' }, `and ${number(alike.length - mostAlike)} more`) : null) : null,
    differ.map(([x, y]) => h('div', { class: 'sides', 'data-test': 'diff-row', 'data-what': 'call' }, h('div', {}, x && callOf(x)), h('div', {}, y && callOf(y)))))
}

// callOf is a call with how it went: one that is done may have been refused by its result.
const callOf = (c) => callBox(c, c.status === 'done' ? verdictOf(c) : c.status)

const callBox = (c, status) => h('div', { class: 'call', 'data-status': status, 'data-bad': isBad(status) },
  h('header', {}, h('code', { class: 'tool-name' }, plain(c.toolName)), chip(status), h('code', { class: 'muted id' }, plain(c.toolCallId))),
  h('div', { class: 'io' }, h('span', { class: 'label' }, 'in'), tree(c.arguments, { open: 1 })),
  c.error ? h('div', { class: 'io' }, h('span', { class: 'label bad' }, 'error'), prose(c.error, { class: 'prose bad' })) : c.result !== undefined && c.result !== null ? h('div', { class: 'io' }, h('span', { class: 'label' }, 'out'), tree(c.result, { open: 1 })) : null)

// messages shows two conversations side by side, what they have in common at
// the front folded.
function messages(a, b, common) {
  const rows = align(a.slice(common), b.slice(common), alike)
  const out = []
  if (common) {
    const front = h('details', { class: 'common', 'data-test': 'common', 'data-count': common }, h('summary', {}, `${number(common)} ${common === 1 ? 'message is' : 'messages are'} the same`))
    front.addEventListener('toggle', () => {
      if (front.open && front.childElementCount === 1) front.append(...a.slice(0, common).map((m) => h('div', { class: 'sides' }, h('div', {}, side(m)))))
    })
    out.push(front)
  }
  for (const [x, y] of rows) {
    const kind = x && y ? (equal(x, y) ? 'same' : 'changed') : x ? 'only-a' : 'only-b'
    out.push(h('div', { class: ['sides', kind], 'data-test': 'diff-row', 'data-what': 'message', 'data-kind': kind },
      h('div', {}, x && side(x, y && kind === 'changed' ? y : null)), h('div', {}, y && side(y, x && kind === 'changed' ? x : null))))
  }
  if (!rows.length) out.push(h('p', { class: 'muted pad' }, 'There are no other messages.'))
  return out
}

// What a message says, whatever its calls' ids are.
const said = (m) => ({
  role: m.role, content: m.content, result: m.result, error: m.error, toolName: m.toolName, files: m.files,
  parts: m.parts?.map(({ reasoning, text, toolCall, source, file }) => ({ reasoning, text, source, file, call: toolCall && [toolCall.toolName, toolCall.arguments] })),
})
const equal = (x, y) => same(said(x), said(y))

// alike: equal messages stand beside each other, and between them those of one role. A user's
// message waits for the other one.
const alike = { equal: (x, y) => x.role === y.role && x.content === y.content && equal(x, y), kin: (x, y) => x.role === y.role, waits: (x) => x.role === 'user' }

// side shows a message; what differs from the other one of its pair is marked.
function side(m, other) {
  return h('article', { class: ['message', m.role] },
    h('header', {}, h('strong', {}, { user: 'User', assistant: 'Assistant', tool: 'Tool' }[m.role] ?? plain(m.role)), m.toolName && h('code', {}, plain(m.toolName)), m.sequence ? h('span', { class: 'muted mono' }, `#${m.sequence}`) : null),
    m.role === 'assistant' && m.parts?.length ? m.parts.map((p) => [
      p.reasoning && h('div', { class: 'reasoning' }, prose(p.reasoning)),
      p.text && (other?.content && !p.reasoning ? marked(p.text, other.content) : prose(p.text)),
      p.toolCall && h('div', { class: 'call' }, h('code', { class: 'tool-name' }, plain(p.toolCall.toolName)), tree(p.toolCall.arguments, { open: 1 })),
    ]) : m.content && (other ? marked(m.content, other.content ?? '') : prose(m.content)),
    m.error && prose(m.error, { class: 'prose bad' }),
    m.result !== undefined && m.result !== null && tree(m.result, { open: 2 }))
}
