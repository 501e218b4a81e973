// The head of a lab: which one, how far it is, its verdicts, and baseline against candidate.

import { h, put, setText } from './dom.js'
import { duration, money, number, plain } from './format.js'
import { prose } from './json.js'
import { verdicts } from './labs.js'

const percent = (share) => `${(100 * share).toFixed(Math.abs(share) < 1 && share !== 0 ? 1 : 0)} %`
const few = (n) => n.toLocaleString('en', { maximumFractionDigits: Math.abs(n) < 100 ? 2 : 0 })

// What is compared, and how it is shown.
const measures = [
  ['passed', 'passed', percent], ['cost', 'cost', money], ['tokens', 'tokens', few], ['steps', 'steps', few], ['latencyMs', 'latency', (ms) => duration(ms)],
]

const countable = new Set(['regression', 'improvement'])

// signed shows a change with its sign.
export const signed = (n, show) => (n === 0 ? show(0) : `${n > 0 ? '+' : '−'}${show(Math.abs(n))}`)

// createHead returns the head. filter is the verdict that is shown alone, or ''.
export function createHead(lab, filter, onFilter, onPlain) {
  const title = h('h2', {})
  const hash = h('button', { type: 'button', class: 'quiet mono', 'data-test': 'lab-hash', onclick: () => {
    const whole = lab.begun?.hash ?? ''
    setText(hash, plain(hash.textContent.length < whole.length ? whole : whole.slice(0, 12)))
  } })
  const bar = h('progress', { 'aria-label': 'Sessions that were judged' })
  const progress = h('span', { class: 'muted', 'data-test': 'lab-progress', role: 'status' })
  const filters = h('div', { class: 'lab-filters', role: 'group', 'aria-label': 'Verdicts' })
  const buttons = new Map()
  for (const verdict of ['', ...verdicts.keys()]) {
    const button = h('button', { type: 'button', 'data-test': 'lab-verdict', 'data-verdict': verdict, class: verdicts.get(verdict), onclick: () => onFilter(filter() === verdict ? '' : verdict) })
    buttons.set(verdict, button)
    filters.append(button)
  }
  const compared = h('div', { class: 'lab-compared' })
  const element = h('header', { class: 'lab-head' },
    h('div', { class: 'lab-title' }, title, hash, progress, bar, h('span', { class: 'grow' }),
      h('button', { type: 'button', class: 'quiet', 'data-test': 'lab-plain', title: 'The records of the lab, as of any session', onclick: onPlain }, 'Records')),
    filters, compared)

  let shown = null // the report that is shown
  function update(status) {
    const { begun, rows, report } = lab
    setText(title, begun ? `Lab of ${plain(begun.cohort ?? begun.name)}` : 'Lab')
    if (begun && !hash.textContent) {
      setText(hash, plain(begun.hash.slice(0, 12)))
      hash.title = `The cohort's hash: ${plain(begun.hash)}`
    }
    const all = begun?.sessions ?? rows.size
    bar.max = Math.max(1, all)
    bar.value = rows.size
    bar.hidden = status !== 'running'
    setText(progress, {
      running: `${number(rows.size)} of ${number(all)} sessions`, ended: `${number(all)} session${all === 1 ? '' : 's'}${report ? `, ${few(report.seconds)} s` : ''}`, failed: `failed after ${number(rows.size)} of ${number(all)} sessions`,
    }[status])
    const counts = Map.groupBy(rows.values(), (r) => r.verdict)
    for (const [verdict, button] of buttons) {
      const n = verdict ? counts.get(verdict)?.length ?? 0 : rows.size
      button.hidden = verdict !== '' && verdict !== 'regression' && n === 0 && filter() !== verdict
      button.setAttribute('aria-pressed', String(filter() === verdict))
      button.dataset.count = n
      setText(button, `${number(n)} ${verdict || 'all'}${n !== 1 && countable.has(verdict) ? 's' : ''}`)
    }
    if (report !== shown) put(compared, report ? [comparison(report.compared), judge(report.judge)] : null)
    shown = report
  }
  return { element, update }
}

function comparison(c) {
  if (!c?.passed?.pairs) return h('p', { class: 'muted' }, 'No pair of lanes was judged, so there is nothing to compare.')
  const rows = measures.map(([key, name, show]) => {
    const m = c[key]
    const clear = m.interval.low > 0 || m.interval.high < 0
    return h('tr', { 'data-test': 'lab-measure', 'data-what': key, class: clear ? 'differs' : '' }, h('th', { scope: 'row' }, name),
      h('td', {}, show(m.baseline)), h('td', {}, show(m.candidate)), h('td', {}, signed(m.change, show)),
      h('td', { class: 'muted' }, `${signed(m.interval.low, show)} … ${signed(m.interval.high, show)}`), h('td', { class: 'muted' }, m.needed ? number(m.needed) : '–'))
  })
  const acts = [['arguments', 'with other arguments'], ['callsAdded', 'more'], ['callsMissing', 'fewer']].filter(([k]) => c[k]).map(([k, words]) => `${number(c[k])} ${words}`)
  const approvals = [['approvalsAdded', 'added'], ['approvalsAvoided', 'avoided']].filter(([k]) => c[k]).map(([k, words]) => `${number(c[k])} ${words}`)
  return h('section', { 'aria-label': 'Baseline and candidate' },
    h('div', { class: 'lab-scroll', tabindex: 0, role: 'region', 'aria-label': 'The comparison' }, h('table', { class: 'figures' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, `${number(c.passed.pairs)} pair${c.passed.pairs === 1 ? '' : 's'}`), ['baseline', 'candidate', 'change', 'interval, 95 %'].map((t) => h('th', { scope: 'col' }, t)),
        h('th', { scope: 'col', title: 'Sessions that it takes to find a change of this size, with a power of 80 %' }, 'sessions needed'))),
      h('tbody', {}, rows))),
    acts.length ? h('p', { class: 'muted' }, `Calls: ${acts.join(', ')}`) : null,
    approvals.length ? h('p', { class: 'muted' }, `Approvals: ${approvals.join(', ')}`) : null)
}

function judge(j) {
  if (!j) return null
  const { rated, share, kappa, interval } = j.agreement
  return h('section', { class: 'lab-judge', 'aria-label': 'The judge', 'data-test': 'lab-judge' },
    h('p', {}, 'Judge: ', h('code', {}, plain(j.model))),
    rated ? h('p', {}, `It agrees with ${percent(share)} of ${number(rated)} label${rated === 1 ? '' : 's'}: kappa ${few(kappa)} (${few(interval.low)} … ${few(interval.high)})`)
      : h('p', { class: 'muted' }, 'No session that it has judged has a label, so how far to trust it is not known.'),
    prose(j.prompt, { class: 'prose muted lab-prompt', tabindex: 0, role: 'region', 'aria-label': 'The prompt of the judge' }))
}
