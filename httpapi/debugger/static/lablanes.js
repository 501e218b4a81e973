// A session of a lab: what was observed, what the baseline and what the candidate did, side by side.

import { address } from './app.js'
import { chip } from './conversation.js'
import { failure } from './dialog.js'
import { h, icon, put } from './dom.js'
import { duration, line, money, number, plain } from './format.js'
import { prose } from './json.js'
import { decisionOf } from './labcell.js'
import { signed } from './labhead.js'
import { firstOf, rowsOf, sameDecision } from './labrows.js'
import { verdicts } from './labs.js'

const PAGE = 200 // rows that are shown at once
const FEW = 3 // rows that are the same, and are not folded

// title names a lane, with its number if there are several repeats.
const title = (c) => (c.of > 1 ? `${c.name} ${c.repeat + 1}` : c.name)

// createLanes returns the view of a session. table knows the session before and after it.
export function createLanes(app, lab, labels, table, signal) {
  const element = h('section', { class: 'lab-lanes', 'aria-label': 'Lanes', 'data-test': 'lab-lanes' })
  let shown = null, first = null

  // show shows a session, which may not have been judged yet.
  async function show(session) {
    const row = lab.rows.get(session)
    if (shown?.session === session && shown.row === row) return
    const now = shown = { session, row }
    delete element.dataset.ready
    const head = [heading(session, row)]
    put(element, head, h('p', { class: 'muted', role: 'status' }, row || !lab.begun ? 'Loading…' : 'The lab has not judged this session, or its cohort does not have it.'))
    if (!row) return
    try {
      const lanes = await lab.lanes(session, signal)
      if (shown !== now) return
      if (!lanes) put(element, head, h('p', { class: 'muted' }, 'The lab has kept no lanes of this session.'))
      else await draw(head, lanes, row, now)
    } catch (err) {
      if (shown === now && !signal.aborted) put(element, head, failure(err), h('button', { type: 'button', onclick: () => { shown = null; show(session) } }, 'Try again'))
    }
  }

  function heading(session, row) {
    const to = (by, label, picture) => {
      const next = table.next(session, by)
      return h(next === undefined ? 'span' : 'a', { class: 'lab-step', 'data-test': by < 0 ? 'lab-previous' : 'lab-next', ...(next === undefined ? { 'aria-hidden': 'true' } : { title: label, 'aria-label': label, href: address({ session: app.session, part: next }) }) }, icon(picture))
    }
    return h('header', { class: 'lab-title' }, h('a', { href: address({ session: app.session }), 'data-test': 'lab-back' }, '← All sessions'), to(-1, 'The session before (p)', 'back'), to(1, 'The next session (n)', 'next'),
      h('h2', { title: plain(session) }, line(session, 80)), row ? [chip(row.verdict, verdicts.get(row.verdict) ?? 'warn'), h('span', { class: 'muted' }, line(row.agent, 60))] : null, h('span', { class: 'grow' }), labels.control(session))
  }

  // draw chooses the lanes, and fills in the moments when they are known.
  async function draw(head, s, row, now) {
    const both = lab.begun?.baseline === 'driven'
    const baselines = (s.baseline ?? []).map((l, i, { length }) => ({ name: 'baseline', repeat: i, of: length, lane: l, id: row.stored?.baseline?.[i] }))
    const candidates = (s.candidate ?? []).map((l, i, { length }) => ({ name: 'candidate', repeat: i, of: length, lane: l, id: row.stored?.candidate?.[i] }))
    const observed = { name: 'observed', repeat: 0, lane: s.observed, id: s.session }
    const choices = [...candidates, ...(both && baselines.length > 1 ? baselines.slice(1) : [])]
    const flaky = row.verdict === 'flaky' && baselines.find((b) => b.repeat > 0 && both && (b.lane.outcome !== baselines[0].lane.outcome || !alike(b.lane, baselines[0].lane)))
    const pick = { baseline: baselines[0], last: flaky || candidates.find((c) => c.lane.prefix === row.prefix) || candidates[0] || { name: 'candidate', repeat: 0, lane: {} } }
    const known = new Map() // moments, by the id of a session
    const body = h('div', {})
    const again = () => put(body, bodyOf())
    const bodyOf = () => {
      const columns = [observed, ...(both && pick.baseline ? [pick.baseline] : []), pick.last]
      return lanesOf(s, row, columns, known, selectors(columns))
    }
    const selectors = (columns) => columns.map((c, i) => {
      const last = i === columns.length - 1
      const of = last ? choices : i > 0 ? baselines : []
      if (of.length < 2) return h('span', {}, title(c))
      const select = h('select', { 'aria-label': last ? 'Lane on the right' : 'Repeat of the baseline', 'data-test': last ? 'lab-repeat' : 'lab-baseline', onchange: () => {
        pick[last ? 'last' : 'baseline'] = of[select.selectedIndex]
        load()
      } }, of.map((o) => h('option', { selected: o === c }, title(o))))
      return select
    })
    const load = async () => {
      again()
      reveal()
      element.dataset.ready = ''
      const wanted = [observed, pick.baseline, pick.last].filter((c) => c?.id && !known.has(c.id))
      try {
        await Promise.all(wanted.map(async (c) => {
          const at = c.lane.decisions?.map((d) => numberOf(c, d)).filter(Boolean) ?? []
          known.set(c.id, await lab.moments(c.id, at, signal))
        }))
      } catch (err) { // the lanes are there; the ways to their moments are not
        if (shown === now && !signal.aborted) body.prepend(failure(err), h('button', { type: 'button', 'data-test': 'lab-again', onclick: load }, 'Try again'))
      }
      if (shown !== now || !wanted.length) return
      for (const fill of body.querySelectorAll('[data-moment]')) fill.fill()
      body.querySelector('.lab-summary')?.fill()
    }
    put(element, head, body)
    await load()
  }

  // reveal scrolls to the first difference.
  function reveal() {
    first?.scrollIntoView({ block: 'center' })
  }

  function lanesOf(s, row, columns, known, names) {
    const rows = rowsOf(columns.map((c) => c.lane.decisions ?? []))
    const parted = columns.at(-1).name === 'candidate' || row.verdict === 'flaky'
    const at = firstOf(rows, parted ? row.difference : undefined, s.agent)
    if (at >= 0) rows[at].same = false // what is marked is not folded
    const summary = h('div', { class: 'lab-summary' })
    summary.fill = () => put(summary, summaryOf(row, columns, known, rows, at))
    summary.fill()
    const grid = h('div', { class: 'lab-grid', style: { '--lanes': columns.length } }, h('div', { class: 'lab-row lab-names' }, names.map((n) => h('div', {}, n))))
    first = null
    let from = 0
    const until = (to) => {
      while (from < rows.length && from < to) {
        let end = from
        while (end < rows.length && rows[end].same) end++
        const folded = end === rows.length ? end - from : end - from - 1 // the one before a difference is shown
        if (folded > FEW) grid.append(fold(rows.slice(from, from + folded), columns, known))
        for (let i = folded > FEW ? from + folded : from; i < Math.max(end, from + 1); i++) grid.append(...rowOf(rows[i], columns, known, i === at ? row.difference : null))
        from = Math.max(end, from + 1)
      }
      if (from >= rows.length) return
      const more = h('button', { type: 'button', class: 'quiet', 'data-test': 'lab-more-rows', onclick: () => {
        more.remove()
        until(from + PAGE)
      } }, `${number(Math.min(PAGE, rows.length - from))} more of ${number(rows.length - from)}`)
      grid.append(more)
    }
    until(Math.max(PAGE, at + 1))
    const ends = at < 0 && row.difference ? h('p', { class: 'lab-first', 'data-test': 'lab-first', tabindex: -1 }, h('strong', {}, 'No decision differs: '), plain(row.difference.kind), ' – ', plain(row.difference.why)) : null
    first ??= ends
    return [summary, ends, grid]
  }

  function rowOf(row, columns, known, difference) {
    const cells = columns.map((c, i) => {
      const d = row.cells[i]
      if (!d) return h('div', { class: 'lab-none' })
      const last = i === columns.length - 1
      const against = row.cells[last ? i - 1 : columns.length - 1]
      // What has changed is marked in the last lane, in texts in the others, too.
      const other = last || (row.differs && d.kind !== 'model-request') ? against : undefined
      return h('div', {}, decisionOf(d, { other, texts: !last, compact: row.same, lane: c.name, moment: momentOf(c, d, known) }))
    })
    const element = h('div', { class: ['lab-row', row.same ? 'same' : row.differs ? 'differs' : 'apart', difference && 'first'], 'data-test': 'lab-lanes-row', 'data-differs': row.differs }, cells)
    if (!difference) return [element]
    first = h('p', { class: 'lab-first', 'data-test': 'lab-first', tabindex: -1 }, h('strong', {}, 'First difference: '), plain(difference.kind), difference.sequence ? ` at #${difference.sequence}` : '', difference.agent ? `, agent ${line(difference.agent, 200)}` : '', ' – ', plain(difference.why))
    return [first, element]
  }

  function fold(rows, columns, known) {
    const box = h('details', { class: 'common', 'data-test': 'common', 'data-count': rows.length }, h('summary', {}, `${number(rows.length)} decisions are the same${rows.some((r) => r.again) ? ', but for what the model is asked, as before' : ''}`))
    box.addEventListener('toggle', () => {
      if (box.open && box.childElementCount === 1) for (const r of rows) box.append(...rowOf(r, columns, known, null))
    })
    return box
  }

  const numberOf = (column, d) => (column.name === 'observed' ? d.sequence : d.at)

  // momentOf is the link to where a decision was recorded.
  function momentOf(column, d, known) {
    const n = numberOf(column, d)
    if (!n) return null
    const place = h('span', { 'data-moment': n })
    place.fill = () => {
      const to = known.get(column.id)?.get(n)
      put(place, to ? h('a', { class: 'mono', 'data-test': 'lab-moment', 'data-lane': column.name, href: address({ session: column.id, at: to }), title: `${plain(column.id)} at #${to}` }, `#${n}`) : h('span', { class: 'mono muted' }, `#${n}`))
    }
    place.fill()
    return place
  }

  function summaryOf(row, columns, known, rows, at) {
    const measures = [
      ['outcome', (l) => l.outcome ? `${l.outcome}${l.error ? ` (${l.error})` : ''}` : l.unjudged ? 'unjudged' : 'none', plain], ['steps', (l) => l.steps ?? 0, number], ['tokens', (l) => (l.tokens?.input ?? 0) + (l.tokens?.output ?? 0), number],
      ['cost', (l) => l.cost ?? 0, money], ['latency', (l) => Math.round((l.latency ?? 0) / 1e6), (ms) => duration(ms)],
    ]
    const lanes = columns.map((c) => c.lane)
    const unkept = columns.filter((c) => !c.id).map(title)
    const absent = columns.filter((c) => c.id && known.get(c.id) === null)
    const to = compareAt(columns, known, rows, at)
    return [
      row.difference ? h('p', { class: 'lab-reason' }, plain(row.difference.why)) : null,
      h('div', { class: 'lab-scroll', tabindex: 0, role: 'region', 'aria-label': 'What the lanes took' }, h('table', { class: 'figures' }, h('thead', {}, h('tr', {}, h('td', {}), columns.map((c) => h('th', { scope: 'col' }, c.id && known.get(c.id) ? h('a', { href: address({ session: c.id }), title: plain(c.id) }, title(c)) : title(c))), h('th', { scope: 'col' }, 'change'))),
        h('tbody', {}, measures.map(([name, of, show]) => {
          const values = lanes.map(of), [a, b] = values.slice(-2)
          return h('tr', { 'data-test': 'lab-lane-measure', 'data-what': name, class: a === b ? '' : 'differs' }, h('th', { scope: 'row' }, name), values.map((v) => h('td', {}, show(v))), h('td', { class: 'muted' }, a !== b && typeof a === 'number' ? signed(b - a, show) : ''))
        })))),
      lanes.map((l, i) => l.unjudged ? h('p', { class: 'bad' }, `The ${title(columns[i])} could not be driven further: `, plain(l.unjudged)) : null),
      (row.checks ?? []).filter((c) => !c.pass).map((c) => h('p', { 'data-test': 'lab-check' }, chip('fails', 'bad'), ' ', h('strong', {}, plain(c.name)), ' ', plain(c.message))),
      lanes.map((l, i) => l.judgement ? h('div', { class: 'io', 'data-test': 'lab-judgement' }, h('span', { class: 'label' }, title(columns[i])), chip(l.judgement.pass ? 'passes' : 'fails', l.judgement.pass ? 'good' : 'bad'), prose(l.judgement.reason ?? '')) : null),
      absent.map((c) => h('p', { class: 'muted', 'data-test': 'lab-absent' }, `This log does not have the session ${plain(c.id)} of the lane ${c.name}, so there are no links to its moments.`)),
      unkept.length ? h('p', { class: 'muted' }, `Not stored as sessions, and without links to moments: ${unkept.join(', ')}.`) : null,
      h('p', { class: 'lab-ways' },
        h('button', { type: 'button', 'data-test': 'lab-to-first', title: 'To the first difference (d)', onclick: reveal }, 'First difference'),
        to ? h('a', { 'data-test': 'lab-compare', href: to }, 'Compare the sessions there') : null,
        row.prefix ? h('span', { class: 'muted' }, 'same prefix ', h('code', { title: plain(row.prefix), 'data-test': 'lab-prefix' }, plain(row.prefix.slice(0, 12)))) : null),
    ]
  }

  // compareAt is the link that compares observed and last lane where they part.
  function compareAt(columns, known, rows, at) {
    const ends = [columns[0], columns.at(-1)].map((c) => {
      const i = columns.indexOf(c)
      for (let r = at < 0 ? rows.length - 1 : at; r >= 0; r--) {
        const d = rows[r].cells[i]
        const to = d && known.get(c.id)?.get(numberOf(c, d))
        if (to) return { session: c.id, at: to }
      }
      return null
    })
    return ends.every(Boolean) ? address({ ...ends[0], compareTo: ends[1] }) : null
  }

  const alike = (a, b) => (a.decisions ?? []).length === (b.decisions ?? []).length && (a.decisions ?? []).every((d, i) => sameDecision(d, b.decisions[i]))

  return { element, show, reveal, clear: () => { shown = null } }
}
