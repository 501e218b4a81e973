// The table of a lab's sessions: what is worst comes first.

import { address } from './app.js'
import { chip } from './conversation.js'
import { h, put, reconcile, setText } from './dom.js'
import { line, money, number, plain } from './format.js'
import { signed } from './labhead.js'
import { verdicts } from './labs.js'

const PAGE = 200 // rows that are there at once, until more are asked for

const heads = ['Verdict', 'Session', 'Difference', 'Why', 'Outcome', 'Tokens, cost', 'Label']
const order = new Map([...verdicts.keys()].map((v, i) => [v, i]))

// createTable returns the table. filter has the verdict that is shown alone, or ''.
export function createTable(app, lab, labels, filter) {
  let rows = [], version = -1, most = PAGE
  const built = new WeakMap() // rows, by what they show

  const search = h('input', { type: 'search', placeholder: 'Session, agent or reason', 'aria-label': 'Filter the sessions', 'data-test': 'lab-filter', autocomplete: 'off', spellcheck: 'false', oninput: () => {
    most = PAGE
    update()
  } })
  const count = h('span', { class: 'muted', role: 'status', 'data-test': 'lab-count' })
  const body = h('tbody', {})
  const more = h('button', { type: 'button', class: 'quiet', 'data-test': 'lab-more', onclick: () => {
    const first = body.children[most]
    most += PAGE
    update()
    ;(first ?? body.children[most - PAGE])?.querySelector('a')?.focus()
  } })
  const element = h('section', { class: 'lab-sessions', 'aria-label': 'Sessions' }, h('div', { class: 'lab-find' }, search, count),
    h('table', { class: 'lab-table' }, h('thead', {}, h('tr', {}, heads.map((t) => h('th', { scope: 'col' }, t)))), body), more)

  // sorted are all sessions in their order.
  let all = []
  function sorted() {
    if (version === lab.version) return all
    version = lab.version
    all = [...lab.rows.values()].sort((a, b) => (order.get(a.verdict) ?? 0) - (order.get(b.verdict) ?? 0) || (a.session < b.session ? -1 : a.session > b.session ? 1 : 0))
    return all
  }

  function update() {
    const verdict = filter.verdict, text = search.value.trim().toLowerCase()
    rows = sorted().filter((r) => (!verdict || r.verdict === verdict) && (!text || `${r.session}\n${r.agent}\n${r.difference?.agent ?? ''}\n${r.difference?.kind ?? ''}\n${r.difference?.why ?? ''}`.toLowerCase().includes(text)))
    reconcile(body, rows.slice(0, most), build)
    setText(count, verdict || text ? `${number(rows.length)} of ${number(all.length)}` : '')
    more.hidden = rows.length <= most
    setText(more, `${number(Math.min(PAGE, rows.length - most))} more of ${number(rows.length - most)}`)
  }

  function build(r) {
    if (!built.has(r)) built.set(r, rowOf(r))
    return built.get(r)
  }

  function rowOf(r) {
    const d = r.difference
    const cell = (name, ...children) => h('td', { 'data-name': name }, ...children)
    const change = (of, show) => {
      const [a, b] = [of(r.baseline), of(r.candidate)]
      return !a && !b ? null : h('span', {}, show(b), a === b ? null : h('span', { class: 'muted' }, ` ${signed(b - a, show)}`))
    }
    const [from, to] = [r.baseline?.outcome, r.candidate?.outcome]
    const href = address({ session: app.session, part: r.session })
    return h('tr', {
      'data-test': 'lab-row', 'data-session': r.session, 'data-verdict': r.verdict, onclick: (event) => {
        if (!event.target.closest('a, button') && !getSelection().toString()) app.go({ part: r.session })
      },
    },
    cell('verdict', chip(line(r.verdict, 24), verdicts.get(r.verdict) ?? 'warn')),
    cell('session', h('a', { href, title: plain(r.session) }, line(r.session, 60)), h('span', { class: 'muted' }, line(r.agent, 40)), d?.agent && d.agent !== r.agent ? h('span', { class: 'muted', title: plain(d.agent) }, line(d.agent, 40)) : null),
    cell('kind', d ? [h('span', {}, line(d.kind, 60)), d.sequence ? h('span', { class: 'mono muted' }, `#${d.sequence}`) : null] : null),
    cell('why', h('span', { class: 'lab-why', title: line(d?.why ?? '', 1000) }, line(d?.why ?? '', 400))),
    cell('outcome', from === to || from === undefined ? plain(to ?? '') : [plain(from), ' → ', h('strong', {}, plain(to || 'none'))]),
    cell('used', change((m) => m?.tokens ?? 0, number), change((m) => m?.cost ?? 0, money)),
    cell('label', labels.control(r.session)))
  }

  // step moves the focus among the rows.
  function step(by) {
    const links = [...body.querySelectorAll('a')]
    const i = links.indexOf(document.activeElement?.closest('tr')?.querySelector('a'))
    ;(links[i < 0 ? 0 : i + by] ?? (by < 0 ? search : more)).focus()
  }

  return {
    element, update, step,
    rewind: () => { most = PAGE },
    focused: () => document.activeElement?.closest('[data-test="lab-row"]')?.dataset.session,
    focus: (session) => body.querySelector(`[data-session="${CSS.escape(session)}"] a`)?.focus({ preventScroll: true }),
    // next is the session after or before another one.
    next: (session, by) => rows[rows.findIndex((r) => r.session === session) + by]?.session,
  }
}
