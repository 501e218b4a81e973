// The lab: what changed agents did in recorded sessions. A lab is a session whose records hold its
// results; this shows them in place of the ordinary view.

import { sessionPath } from './api.js'
import { address } from './app.js'
import { chip } from './conversation.js'
import { failure } from './dialog.js'
import { h, put, setText } from './dom.js'
import { duration, line, money, number, plain } from './format.js'
import { createLabels } from './lablabels.js'
import { createLanes } from './lablanes.js'
import { statesOf } from './states.js'

const ROWS = 200 // that are shown before more are asked for
const verdicts = ['regression', 'unjudged', 'flaky', 'improvement', 'changed', 'same']
const tone = { regression: 'bad', unjudged: 'warn', flaky: 'warn', improvement: 'good', changed: 'info', same: 'plain' }

export function mount(element, app) {
  let lab = null // of the session that is shown
  let drawn = '' // what is in the table
  let most = ROWS
  let plainView = false // the records of the lab are wanted
  const filter = { verdict: '', text: '' }
  const labels = createLabels(app, () => paint())
  const lanes = createLanes(app)

  const ui = {
    name: h('h2', {}), progress: h('span', { class: 'muted', 'data-test': 'lab-progress', role: 'status' }),
    ordinary: h('button', { type: 'button', class: 'quiet', 'data-test': 'lab-ordinary', onclick: () => { plainView = !plainView; show() } }),
    counts: h('div', { class: 'lab-counts', role: 'group', 'aria-label': 'Verdicts' }),
    search: h('input', { type: 'search', placeholder: 'Filter', 'aria-label': 'Sessions, agents or reasons that contain', 'data-test': 'lab-filter', autocomplete: 'off', spellcheck: 'false', oninput: (e) => { filter.text = e.target.value.trim().toLowerCase(); most = ROWS; paint() } }),
    compared: h('div', { class: 'lab-compared' }), trouble: h('div', {}),
    table: h('div', { class: 'lab-table' }), detail: h('div', { class: 'lab-detail' }),
  }
  const body = h('div', { class: 'lab-body' }, ui.compared, h('div', { class: 'lab-filters' }, ui.counts, ui.search), ui.trouble, ui.table)
  put(element, h('header', { class: 'lab-head' }, ui.name, ui.progress, h('span', { class: 'grow' }), ui.ordinary), body, ui.detail)

  const isLab = () => app.timeline?.lanes?.some((l) => l.sessionId === app.session && l.agentType === 'lab') ?? false

  // show decides what the stage shows.
  function show() {
    const is = isLab()
    element.hidden = !is
    document.body.toggleAttribute('data-lab', is && !plainView)
    if (!is) return
    setText(ui.ordinary, plainView ? 'Back to the lab' : 'Records')
    body.hidden = plainView || app.part !== null
    ui.detail.hidden = plainView || app.part === null
    if (lab?.session !== app.session) {
      lab = { session: app.session, seen: 0, rows: new Map(), begun: null, report: null, reading: false }
      most = ROWS
      Object.assign(filter, { verdict: '', text: '' })
      ui.search.value = ''
      paint()
    }
    read()
    if (app.part !== null) lanes.show(ui.detail, lab, app.part)
  }

  // read reads what is new in the lab's session.
  async function read() {
    const mine = lab
    if (mine.reading || mine.seen >= app.head) return
    mine.reading = true
    const upTo = app.head
    try {
      await app.api.ndjson(sessionPath(mine.session, 'records'), { type: 'custom', call: 'results', from: mine.seen, to: upTo }, (record) => {
        const data = record.data ?? record.payload
        learn(mine, data?.eventName, data?.data)
      })
      mine.seen = upTo
      if (app.timeline?.status === 'completed' && !mine.report) mine.report = (await statesOf(app).get(mine.session, upTo)).output ?? null
      put(ui.trouble)
    } catch (err) {
      if (mine === lab) put(ui.trouble, failure(err))
    }
    mine.reading = false
    if (mine !== lab) return
    paint()
    if (app.part !== null) lanes.show(ui.detail, lab, app.part)
    if (mine.seen < app.head) read()
  }

  function learn(mine, event, data) {
    if (event === 'lab-begun') {
      mine.begun = data
      labels.of(data.hash)
    } else if (event === 'lab-result') {
      mine.rows.set(data.result.session, { ...data.result, stored: data.stored })
    }
  }

  const rank = (row) => verdicts.indexOf(row.verdict)

  function paint() {
    if (!lab) return
    const { begun, report, rows } = lab
    setText(ui.name, `Lab ${line(begun?.name ?? '', 60)}`)
    ui.name.title = begun ? plain(`cohort hash ${begun.hash}`) : ''
    const all = begun?.sessions ?? 0
    setText(ui.progress, !begun ? 'Loading…' : report || app.timeline?.status === 'completed' ? `${number(all)} session${all === 1 ? '' : 's'}` : `${number(rows.size)} of ${number(all)} sessions, running`)
    put(ui.counts, verdicts.map((v) => {
      const n = [...rows.values()].filter((r) => r.verdict === v).length
      return n ? h('button', {
        type: 'button', class: ['lab-count', tone[v]], 'aria-pressed': String(filter.verdict === v), 'data-test': 'lab-verdict', 'data-verdict': v, 'data-count': n,
        onclick: () => { filter.verdict = filter.verdict === v ? '' : v; most = ROWS; paint() },
      }, h('strong', {}, number(n)), ` ${v}`) : null
    }))
    put(ui.compared, report?.compared ? compared(report) : null)
    table([...rows.values()].sort((a, b) => rank(a) - rank(b) || (a.session < b.session ? -1 : 1)))
  }

  function table(sorted) {
    const fits = sorted.filter((r) => (!filter.verdict || r.verdict === filter.verdict) &&
      (!filter.text || [r.session, r.agent, r.difference?.kind, r.difference?.why].some((t) => String(t ?? '').toLowerCase().includes(filter.text))))
    const shown = fits.slice(0, most)
    const now = JSON.stringify([shown.map((r) => [r.session, r.verdict]), fits.length, labels.all()])
    if (now === drawn) return
    drawn = now
    put(ui.table, shown.length ? h('table', {},
      h('thead', {}, h('tr', {}, ['Verdict', 'Session', 'Where', 'Why', 'Outcome', 'Tokens', 'Cost', 'Label'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, shown.map(row))) : h('p', { class: 'empty' }, sorted.length ? 'Nothing fits.' : 'No session is judged yet.'),
    fits.length > most ? h('button', { type: 'button', 'data-test': 'lab-more', onclick: () => { most += ROWS; drawn = ''; paint() } }, `Show more of ${number(fits.length)}`) : null)
  }

  function row(r) {
    const d = r.difference
    const [b, c] = [r.baseline ?? {}, r.candidate ?? {}]
    const was = b.outcome || r.observed?.outcome || ''
    return h('tr', { 'data-test': 'lab-row', 'data-session': r.session, 'data-verdict': r.verdict },
      h('td', {}, chip(r.verdict, tone[r.verdict])),
      h('th', { scope: 'row' }, h('a', { href: address({ session: lab.session, part: r.session }), 'data-test': 'lab-open' }, line(r.session, 60)), h('span', { class: 'muted' }, line(r.agent, 40))),
      h('td', { class: 'lab-where' }, d ? [h('code', {}, plain(d.kind)), d.sequence ? h('span', { class: 'muted mono' }, ` #${d.sequence}`) : null] : null),
      h('td', { class: 'lab-why' }, d ? line(d.why, 240) : ''),
      h('td', {}, c.outcome && c.outcome !== was ? [line(was, 60), h('span', { class: 'muted' }, ' → '), line(c.outcome, 60)] : line(was, 60)),
      h('td', { class: 'num' }, change(b.tokens, c.tokens, number)),
      h('td', { class: 'num' }, change(b.cost, c.cost, money)),
      h('td', {}, labels.control(r.session)))
  }

  for (const event of ['session', 'timeline', 'part']) app.on(event, show)
  app.on('reset', () => { lab = null; drawn = '' })
  show()
}

// change shows a value and by how much it differs.
function change(before = 0, after = 0, say) {
  if (!before && !after) return ''
  const by = after - before
  return [say(after), by ? h('span', { class: by > 0 ? 'lab-up' : 'lab-down' }, ` ${by > 0 ? '+' : '−'}${say(Math.abs(by))}`) : null]
}

// compared is the paired comparison of all sessions.
function compared({ compared: c, judge }) {
  const percent = (v) => `${(100 * v).toFixed(1)} %`
  const lines = [['passed', c.passed, percent], ['cost', c.cost, money], ['tokens', c.tokens, (v) => number(Math.round(v))], ['steps', c.steps, (v) => v.toFixed(2)], ['model time', c.latencyMs, duration]]
  const signed = (say) => (v) => (v < 0 ? `−${say(-v)}` : say(v))
  return [
    h('table', { 'data-test': 'lab-compared' },
      h('thead', {}, h('tr', {}, h('td', {}), ['baseline', 'candidate', 'change, 95 % interval', 'sessions to see it'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, lines.map(([name, m, say]) => (!m || (!m.baseline && !m.candidate) ? null : h('tr', { 'data-what': name },
        h('th', { scope: 'row' }, name), h('td', {}, say(m.baseline)), h('td', {}, say(m.candidate)),
        h('td', {}, `${signed(say)(m.change ?? 0)} (${m.interval ? `${signed(say)(m.interval.low)} to ${signed(say)(m.interval.high)}` : '–'})`),
        h('td', {}, m.needed ? number(m.needed) : '–')))))),
    judge ? h('details', { class: 'lab-judge', 'data-test': 'lab-judge' }, h('summary', {}, `Judge ${line(judge.model, 60)}: `,
      judge.agreement?.rated ? `agrees with people on ${percent(judge.agreement.share)} of ${number(judge.agreement.rated)} labels, kappa ${judge.agreement.kappa.toFixed(2)}` : 'no session has a label of a person'),
    h('div', { class: 'prose' }, plain(judge.prompt))) : null,
  ]
}
