// One session of a lab: what happened, what the baseline did and what the candidate did, side by side.

import { sessionPath } from './api.js'
import { address } from './app.js'
import { marked } from './compare.js'
import { chip } from './conversation.js'
import { failure } from './dialog.js'
import { h, put } from './dom.js'
import { duration, line, money, number, plain } from './format.js'
import { prose, tree } from './json.js'

const KEEP = 2 // equal rows that are shown before a difference

// createLanes returns what shows the lanes of a session in an element.
export function createLanes(app) {
  let shown = '', repeat = 0

  return {
    async show(element, lab, session) {
      const row = lab.rows.get(session)
      const now = JSON.stringify([lab.session, session, row?.verdict])
      if (now === shown && element.firstChild) return
      shown = now
      repeat = 0
      if (!row) {
        put(element, head(lab, session), h('p', { class: 'empty' }, lab.reading ? 'Loading…' : 'The lab has not judged this session.'))
        return
      }
      put(element, head(lab, session), h('p', { class: 'empty' }, 'Loading…'))
      try {
        let text = ''
        await app.api.ndjson(sessionPath(lab.session, 'records'), { type: 'custom', call: session }, (record) => {
          const chunk = record.data ?? record.payload
          if (chunk?.eventName === 'lab-lanes') text += chunk.data.text
        })
        const lanes = JSON.parse(text)
        const moments = await momentsOf(app, [session, ...(row.stored?.baseline ?? []), ...(row.stored?.candidate ?? [])])
        if (shown === now) draw(element, lab, session, row, lanes, moments)
      } catch (err) {
        if (shown !== now) return
        shown = ''
        put(element, head(lab, session), failure(err))
      }
    },
  }

  function draw(element, lab, session, row, lanes, moments) {
    const driven = lab.begun?.baseline === 'driven'
    const n = Math.min(repeat, lanes.candidate.length - 1)
    const all = [
      { name: 'observed', lane: lanes.observed, session, at: (d) => d.sequence },
      driven && { name: 'baseline', lane: lanes.baseline[n] ?? lanes.baseline[0], session: row.stored?.baseline?.[n], at: (d) => d.at },
      { name: 'candidate', lane: lanes.candidate[n], session: row.stored?.candidate?.[n], at: (d) => d.at },
    ].filter(Boolean)
    for (const l of all) {
      l.goes = (d) => (l.session && l.at(d) ? moments.of(l.session, l.at(d)) : null)
    }
    const rows = aligned(all.map((l) => l.lane.decisions ?? []))
    const first = firstDifference(rows, row.difference)
    const d = row.difference
    const compare = compareAddress(all, rows[first], row)
    put(element, head(lab, session),
      h('div', { class: 'lab-what' }, chip(row.verdict, { regression: 'bad', improvement: 'good', same: 'plain', changed: 'info' }[row.verdict] ?? 'warn'), ' ',
        d ? [h('code', {}, plain(d.kind)), ' ', h('span', { 'data-test': 'lab-why' }, prose(d.why))] : h('span', {}, 'Nothing differs.'),
        compare ? h('a', { class: 'button', href: compare, 'data-test': 'lab-compare' }, 'Compare the states') : null),
      lanes.candidate.length > 1 ? h('label', { class: 'lab-repeat' }, 'Repeat ', h('select', { 'data-test': 'lab-repeat', onchange: (e) => { repeat = Number(e.target.value); draw(element, lab, session, row, lanes, moments) } },
        lanes.candidate.map((_, i) => h('option', { value: String(i), selected: i === n }, String(i + 1))))) : null,
      checks(row.checks ?? []),
      h('div', { class: 'lab-lanes', style: { '--lanes': all.length }, role: 'table', 'aria-label': 'Lanes' },
        h('div', { class: 'lab-line lab-titles', role: 'row' }, all.map((l) => title(l, moments))),
        lines(rows, all, first, d)))
    const mark = element.querySelector('[data-first]')
    requestAnimationFrame(() => mark?.scrollIntoView({ block: 'center' }))
  }

  function head(lab, session) {
    return h('header', { class: 'lab-of' }, h('a', { href: address({ session: lab.session }), 'data-test': 'lab-back' }, '← all sessions'), h('h3', {}, line(session, 120)))
  }
}

// title says how a lane ended and what it took.
function title(l, moments) {
  const { lane } = l
  return h('div', { class: 'lab-cell', role: 'columnheader', 'data-lane': l.name },
    h('strong', {}, l.name), ' ', h('span', {}, plain(lane.unjudged ? 'ended early' : lane.outcome || 'no run')), lane.error ? h('code', {}, plain(lane.error)) : null,
    h('p', { class: 'muted' }, `${number((lane.tokens?.input ?? 0) + (lane.tokens?.output ?? 0))} tokens, ${number(lane.steps ?? 0)} step${lane.steps === 1 ? '' : 's'}`, lane.cost ? `, ${money(lane.cost)}` : '', lane.latency ? `, ${duration(lane.latency / 1e6)}` : ''),
    lane.unjudged ? h('p', { class: 'warn' }, line(lane.unjudged, 300)) : null,
    lane.judgement ? h('p', { class: lane.judgement.pass ? 'good' : 'bad', 'data-test': 'lab-judgement' }, `the judge: ${lane.judgement.pass ? 'good' : 'bad'}${lane.judgement.reason ? `, ${line(lane.judgement.reason, 300)}` : ''}`) : null,
    lane.prefix && l.name !== 'observed' ? h('p', { class: 'muted mono', title: plain(`SHA-256 of the decisions that equal the recorded ones: ${lane.prefix}`) }, `SHA-256 of what is the same: ${lane.prefix.slice(0, 12)}`) : null,
    l.session && moments.has(l.session) ? h('a', { href: address({ session: l.session }), 'data-test': 'lab-session' }, 'open the session')
      : h('span', { class: 'muted' }, l.name === 'observed' ? 'The session is not in this log.' : 'The lane was not kept.'))
}

const checks = (all) => {
  const failed = all.filter((c) => !c.pass)
  return failed.length ? h('ul', { class: 'lab-checks' }, failed.map((c) => h('li', { 'data-test': 'lab-check' }, h('strong', { class: 'bad' }, line(c.name, 80)), ' ', line(c.message ?? '', 300)))) : null
}

// lines are the rows of decisions; equal ones far from the first difference are folded.
function lines(rows, all, first, difference) {
  const fold = first > KEEP + 1 ? first - KEEP : first < 0 && rows.length > 40 ? rows.length - KEEP : 0
  const draw = (r, i) => lineOf(r, i, all, i === first ? difference : null)
  if (!fold) return rows.map(draw)
  const folded = h('details', { class: 'common', 'data-test': 'lab-common', 'data-count': fold }, h('summary', {}, `${number(fold)} decision${fold === 1 ? '' : 's'} before are the same`))
  folded.addEventListener('toggle', () => {
    if (folded.open && folded.childElementCount === 1) folded.append(...rows.slice(0, fold).map(draw))
  })
  return [folded, ...rows.slice(fold).map((r, i) => draw(r, i + fold))]
}

function lineOf(row, index, all, difference) {
  const given = row.filter(Boolean)
  const same = given.length === all.length && given.every((d) => equal(d, given[0]))
  return h('div', { class: ['lab-line', same ? 'same' : 'differs'], role: 'row', 'data-test': 'lab-line', 'data-index': index, 'data-first': Boolean(difference) },
    difference ? h('p', { class: 'lab-first' }, h('strong', {}, 'First difference: '), line(difference.why, 300)) : null,
    row.map((d, i) => h('div', { class: 'lab-cell', role: 'cell', 'data-lane': all[i].name }, d ? decision(d, all[i], row[i === 0 ? all.length - 1 : 0]) : h('span', { class: 'muted' }, '–'))))
}

function decision(d, lane, other) {
  const to = lane.goes(d)
  const text = content(d)
  const parts = d.kind === 'model-request' && lane.name === 'candidate' ? changedParts(d, other) : []
  return [
    h('header', {}, h('code', { class: 'lab-kind' }, plain(d.kind)), d.name ? h('strong', {}, line(d.name, 60)) : null, d.agent ? h('span', { class: 'muted' }, line(d.agent, 60)) : null, h('span', { class: 'grow' }),
      to ? h('a', { href: to.address, class: 'mono', 'data-test': 'lab-moment', 'data-at': to.at }, `#${to.at}`) : null),
    parts.length ? h('div', { class: 'lab-parts' }, parts.map((p) => chip(`another ${p}`, 'warn'))) : null,
    text === null ? null : typeof text === 'string' ? (other && content(other) !== text && typeof content(other) === 'string' ? marked(text, content(other)) : prose(text)) : tree(text, { open: 1 }),
  ]
}

// changedParts are the parts of a model's request that another lane's has not, as far as both are known.
const changedParts = (d, other) => (other?.kind === 'model-request' ? Object.keys(d.parts ?? {}).filter((p) => other.parts?.[p] !== undefined && other.parts[p] !== d.parts[p]) : [])

// content is what a decision says: a text, or a value.
function content(d) {
  if (d.kind === 'model-request') return null // it has hashes alone
  if (d.content === undefined || d.content === null) return null
  if (d.kind === 'model-answer' && Array.isArray(d.content) && d.content.every((p) => typeof p?.text === 'string' && !p.call)) return d.content.map((p) => p.text).join('\n')
  return d.content
}

const equal = (a, b) => a.kind === b.kind && a.agent === b.agent && a.name === b.name && (a.hash === b.hash || a.kind === 'model-request')

// aligned sets decisions beside each other that are the same: a row has one of each lane, or null.
export function aligned(lanes) {
  let rows = lanes[0].map((d) => [d])
  for (let n = 1; n < lanes.length; n++) {
    const out = []
    let [i, j] = [0, 0]
    const pad = Array(n).fill(null)
    const last = rows.map((r) => r.findLast(Boolean))
    for (const [x, y] of [...pairs(last, lanes[n]), [rows.length, lanes[n].length]]) {
      while (i < x || j < y) { // what stands between equal ones is set beside each other
        if (i < x && j < y) out.push([...rows[i++], lanes[n][j++]])
        else if (i < x) out.push([...rows[i++], null])
        else out.push([...pad, lanes[n][j++]])
      }
      if (x < rows.length && y < lanes[n].length) out.push([...rows[i++], lanes[n][j++]])
    }
    rows = out
  }
  return rows
}

const most = 600 // decisions after the common ones that are aligned with care

// pairs returns the places of a longest common subsequence, front and end first.
function pairs(a, b) {
  let front = 0
  while (front < a.length && front < b.length && equal(a[front], b[front])) front++
  const out = Array.from({ length: front }, (_, i) => [i, i])
  const [x, y] = [a.slice(front), b.slice(front)]
  if (x.length > most || y.length > most) return out
  const w = y.length + 1
  const long = new Uint16Array((x.length + 1) * w)
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) long[i * w + j] = equal(x[i], y[j]) ? long[(i + 1) * w + j + 1] + 1 : Math.max(long[(i + 1) * w + j], long[i * w + j + 1])
  }
  for (let i = 0, j = 0; i < x.length && j < y.length;) {
    if (equal(x[i], y[j])) out.push([front + i++, front + j++])
    else if (long[(i + 1) * w + j] >= long[i * w + j + 1]) i++
    else j++
  }
  return out
}

// firstDifference is the row where the lanes part: the one that the lab names, or the first that is
// not the same in the last two lanes.
function firstDifference(rows, difference) {
  if (!difference) return -1
  const parted = (r) => {
    const [b, c] = r.slice(-2)
    return !b || !c || !equal(b, c)
  }
  const named = rows.findIndex((r) => parted(r) && r.some((d) => d?.kind === difference.kind))
  return named >= 0 ? named : rows.findIndex(parted)
}

// compareAddress compares the recorded session with the candidate's lane where they part.
function compareAddress(all, row, { stored }) {
  const [observed, candidate] = [all[0], all.at(-1)]
  if (!stored || !row) return ''
  const to = [row[0] && observed.goes(row[0]), row.at(-1) && candidate.goes(row.at(-1))]
  return to[0] && to[1] ? address({ session: observed.session, at: to[0].at, compareTo: { session: candidate.session, at: to[1].at } }) : ''
}

// momentsOf knows where the records of sessions are in this log: an imported one has others.
async function momentsOf(app, sessions) {
  const known = new Map()
  await Promise.all([...new Set(sessions)].filter(Boolean).map(async (session) => {
    const at = new Map()
    try {
      await app.api.ndjson(sessionPath(session, 'records'), { kind: 'fact', dead: true }, (r) => at.set(r.origin?.sequence ?? r.sequence, r.sequence))
    } catch (err) {
      if (err.status !== 404 && err.status !== 403) throw err
      return
    }
    known.set(session, at)
  }))
  return {
    has: (session) => known.has(session),
    of(session, sequence) {
      const at = known.get(session)?.get(sequence)
      return at ? { at, address: address({ session, at }) } : null
    },
  }
}
