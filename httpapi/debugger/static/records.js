// The raw records around the position, as the log has them.

import { h, put } from './dom.js'
import { line, moment as timeOf, number, plain } from './format.js'
import { truncates } from './conversation.js'
import { readBack } from './backwards.js'
import { actor } from './extras.js'
import { failure } from './dialog.js'
import { tree } from './json.js'
import { showsLab } from './labs.js'
import { address } from './app.js'
import { sessionPath } from './api.js'
import { Latest, drawing } from './states.js'

const HALF = 50 // records before the position, and after it
const NEAR = 20 // of them, those that are shown a frame before the others
const REST_MS = 120

export function mount(element, app) {
  const filter = { kind: '', type: '', agent: '', call: '' }
  const types = h('datalist', { id: 'record-types' })
  const control = (name, node) => {
    node.setAttribute('aria-label', `Records by ${name}`)
    node.dataset.test = `record-${name}`
    node.addEventListener('input', () => {
      filter[name] = node.value.trim()
      soon()
    })
    return node
  }
  const agents = control('agent', h('select', {}))
  const filters = h('div', { class: 'by' },
    control('kind', h('select', {}, h('option', { value: '' }, 'all kinds'), h('option', { value: 'chunk' }, 'chunks'), h('option', { value: 'fact' }, 'facts'))),
    control('type', h('input', { placeholder: 'type', list: 'record-types', spellcheck: 'false' })), types, agents,
    control('call', h('input', { placeholder: 'call', spellcheck: 'false' })))
  const count = h('span', { class: 'muted' })
  const list = h('ol', { class: 'records', tabindex: '0', 'aria-label': 'Records around the position' })
  const trouble = h('div', {})
  // One row is in the tab order; the others are reached by the arrows.
  list.addEventListener('keydown', (e) => {
    if (e.key !== 'ArrowDown' && e.key !== 'ArrowUp') return
    const from = document.activeElement.closest('li') ?? list.querySelector('[aria-current]') ?? list.firstElementChild
    const to = document.activeElement === list ? from : e.key === 'ArrowDown' ? from?.nextElementSibling : from?.previousElementSibling
    const button = to?.querySelector('.to')
    if (!button) return
    e.preventDefault()
    for (const b of list.querySelectorAll('button[tabindex="0"]')) b.tabIndex = -1
    for (const b of to.querySelectorAll('.line button')) b.tabIndex = 0
    button.focus()
  })
  const box = h('details', { class: 'log', open: true, ontoggle: () => soon() },
    h('summary', { class: 'head' }, h('h2', {}, 'Records'), count), filters, trouble, list)
  put(element, box)

  let timer = 0
  function soon() {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (!box.open || app.session === null || showsLab(app)) return
      const live = app.at === null
      latest.ask({ session: app.session, n: app.effectiveAt(), live, filter: { ...filter } }, live ? JSON.stringify([app.session, filter]) : '')
    }, REST_MS)
  }

  const latest = new Latest(app, async ({ session, n, live, filter: by }, last, dropped) => {
    try {
      const [before, after, marks] = await Promise.all([upTo(session, n, by), read(session, { ...by, from: n || undefined, limit: HALF }), markers(session)])
      // A session that runs has a further head by now: the last one is shown all the same.
      const still = last() || (live && app.at === null && JSON.stringify(by) === JSON.stringify(filter))
      if (!dropped() && still) await show(session, n, [...before, ...after], marks)
    } catch (err) {
      if (last()) {
        put(trouble, failure(err))
        if (element.dataset.at === undefined) put(list)
      }
    }
  })

  async function read(session, params) {
    if (params.from && params.from >= app.head && app.head) return []
    const found = []
    await app.api.ndjson(sessionPath(session, 'records'), { dead: 1, ...params }, (r) => found.push(r))
    return found
  }

  // upTo returns the last records up to n.
  async function upTo(session, n, by) {
    const { all } = await readBack((part) => read(session, { ...by, ...part }), n, HALF, (r) => r.sequence)
    return all.slice(-HALF)
  }

  // markers returns what has truncated something. They are read again when the
  // timeline has another one.
  let marked = { key: '', list: Promise.resolve([]) }
  function markers(session) {
    const known = (app.timeline?.marks ?? []).filter((m) => m.kind === 'truncated' || m.kind === 'rollback').map((m) => m.sequence)
    const key = `${session} ${app.timeline ? known.join() : ''}`
    if (marked.key !== key) {
      const list = read(session, { kind: 'fact', type: 'truncated' }).then((all) => all.filter((r) => r.type === 'truncated'))
      marked = { key, list }
      list.catch(() => { if (marked.list === list) marked.key = '' })
    }
    return marked.list
  }

  const opened = new Set() // sequences whose payload is shown
  async function show(session, n, records, marks) {
    put(trouble)
    put(types, [...new Set(records.map((r) => r.type))].sort().map((t) => h('option', { value: t })))
    count.textContent = records.length ? `${number(records.length)} around #${n}` : ''
    const several = (app.timeline?.lanes ?? []).length > 1
    const current = records.findLastIndex((r) => r.sequence <= n)
    const focused = list.contains(document.activeElement) && document.activeElement.closest('li')?.dataset.sequence
    const which = document.activeElement.classList.contains('twist') ? '.twist' : '.to'
    const rows = (from, to) => records.slice(from, to).map((r, i) => row(r, n, from + i === current, several, marks))
    const look = () => {
      const at = list.querySelector('[aria-current]')
      if (at) list.scrollTop = at.offsetTop - list.clientHeight / 2
      if (focused && document.activeElement === document.body) list.querySelector(`li[data-sequence="${focused}"] ${which}`)?.focus({ preventScroll: true })
    }
    // All at once would be more than a frame's time.
    const first = Math.max(0, current - NEAR), last = Math.max(0, current) + NEAR
    put(list, records.length ? rows(first, last) : h('li', { class: 'empty' }, 'No such records here.'))
    look()
    await drawing()
    if (app.session !== session) return
    list.prepend(...rows(0, first))
    list.append(...rows(last, records.length))
    look()
    element.dataset.at = n
  }

  function row(r, n, current, several, marks) {
    const by = marks.find((m) => m.sequence > r.sequence && truncates(m.data?.ranges ?? [], r))
    const time = Date.parse(r.origin?.time ?? r.time)
    const body = h('div', { class: 'payload' })
    const tabindex = current ? 0 : -1
    const item = h('li', {
      class: [r.kind, by && 'dead', r.sequence > n && 'later'], 'data-test': 'record-row', 'data-sequence': r.sequence, 'data-type': r.type,
      'data-truncated': by ? by.sequence : undefined, 'aria-current': current ? 'true' : undefined,
    },
    h('div', { class: 'line' },
      h('button', { type: 'button', class: 'quiet twist', tabindex, 'aria-expanded': 'false', 'aria-label': `Payload of ${r.sequence}`, onclick: (e) => turn(e.currentTarget) }, '▸'),
      h('button', { type: 'button', class: 'quiet to', tabindex, title: `${timeOf(time)}${by ? `, truncated by #${by.sequence}` : ''}`, onclick: () => app.go({ at: r.sequence }) },
        h('span', { class: 'seq' }, r.sequence), h(by ? 's' : 'span', { class: 'type' }, plain(r.type)), h(by ? 's' : 'span', { class: 'gist' }, gist(r)))),
    body)
    const twist = item.querySelector('.twist')
    const turn = () => {
      const open = twist.getAttribute('aria-expanded') !== 'true'
      twist.setAttribute('aria-expanded', String(open))
      open ? opened.add(r.sequence) : opened.delete(r.sequence)
      put(body, open ? payload(r, time, several, by) : '')
    }
    if (opened.has(r.sequence)) turn()
    return item
  }

  function payload(r, time, several, by) {
    const to = new URL(address({ session: app.session, at: r.sequence, compareTo: null }), location.href).href
    const copy = h('button', { type: 'button', class: 'quiet', 'data-test': 'copy-link', onclick: async () => {
      try {
        await navigator.clipboard.writeText(to)
        copy.textContent = 'Copied'
      } catch {
        const input = h('input', { readonly: true, value: to, 'aria-label': 'The link' })
        copy.replaceWith(input)
        input.select()
      }
    } }, 'Copy link')
    const fact = (name, value) => value && h('span', {}, h('span', { class: 'muted' }, `${name} `), h('code', {}, plain(value)), ' ')
    return [h('div', { class: 'envelope' }, fact('kind', r.kind), several && fact('agent', r.agent), fact('call', r.call), fact('run', r.run), fact('at', timeOf(time)), fact('by', actor(r.data?.by)),
      by && fact('truncated by', `#${by.sequence}`), h('span', { class: 'grow' }), copy), tree(r.data, { open: 2 })]
  }

  app.on('session', () => {
    opened.clear()
    delete element.dataset.at
    put(list, h('li', { class: 'empty' }, 'Loading…'))
    put(trouble)
    count.textContent = ''
    lanes()
    soon()
  })
  app.on('reset', () => { marked = { key: '', list: Promise.resolve([]) } })
  app.on('at', soon)
  app.on('part', soon)
  app.on('timeline', () => {
    lanes()
    if (app.at === null || marked.key !== '') soon()
  })

  function lanes() {
    const all = app.timeline?.lanes ?? []
    agents.hidden = all.length < 2
    if (agents.options.length === all.length + 1) return
    put(agents, h('option', { value: '' }, 'all agents'), all.map((l) => h('option', { value: l.sessionId }, plain(l.agentType || l.sessionId))))
    agents.value = filter.agent = all.some((l) => l.sessionId === filter.agent) ? filter.agent : ''
  }
  if (app.session !== null) put(list, h('li', { class: 'empty' }, 'Loading…'))
  lanes()
  soon()
}

// gist is what a record says, in a line.
function gist(r) {
  const d = r.data ?? {}
  const said = d.delta ?? d.content ?? d.error ?? d.eventName ?? d.patches ?? d.toolName ?? d.status ?? d.reason ?? d.node ?? d.stepId ?? d.runId ?? ''
  return line(typeof said === 'string' ? said : JSON.stringify(said), 120)
}
