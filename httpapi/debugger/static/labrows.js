// The decisions of a session's lanes, row by row: the same ones beside each other.

import { align } from './align.js'

// sameDecision says whether two decisions are the same, as the lab does.
export const sameDecision = (a, b) => a.hash === b.hash && nameOf(a) === nameOf(b)

const nameOf = (d) => JSON.stringify([d.kind, d.agent ?? '', d.name ?? '', d.hash])

const alike = { equal: sameDecision, kin: (a, b) => a.kind === b.kind }

// rowsOf returns rows of a decision, or null, of each lane. The last lane is compared with the one
// before it, which is compared with the one before that. Each agent's decisions are aligned by
// themselves: agents that work at the same time may be recorded in any order.
export function rowsOf(lanes) {
  const last = lanes.length - 1
  const [reference, other] = [lanes[last - 1], lanes[last]]
  const groups = lanes.map((decisions) => Map.groupBy(decisions, (d) => d.agent ?? ''))
  const agents = new Set([...groups[last - 1].keys(), ...groups[last].keys(), ...groups[0].keys()])
  const place = new Map(reference.map((d, i) => [d, i])) // where rows stand among each other
  const places = new Map(reference.map((d, i) => [nameOf(d), i]))
  const of = (lane, agent) => groups[lane].get(agent) ?? []
  const rows = []
  for (const agent of agents) {
    let own = align(of(last - 1, agent), of(last, agent), alike).map(([a, b]) => (lanes.length > 2 ? [null, a, b] : [a, b]))
    if (lanes.length > 2) own = withObserved(own, align(of(1, agent), of(0, agent), alike))
    let at = null
    for (const cells of own) {
      const [a, b] = cells.slice(-2)
      if (a) at = place.get(a)
      at ??= before(b, other, places)
      rows.push({ cells, at, differs: Boolean(a || b) && !(a && b && sameDecision(a, b)), same: cells.every((d) => d && b && sameDecision(d, b)) })
    }
  }
  return known(rows.sort((x, y) => x.at - y.at))
}

// changedParts are the parts of a model's request in which it differs from another one, as far as
// they are known.
export const changedParts = (d, other) => (d.parts && other?.parts ? Object.keys(d.parts).filter((k) => other.parts[k] !== undefined && other.parts[k] !== d.parts[k]) : [])

// known marks requests that differ only as earlier ones of the agent do: a changed prompt is in each
// of them, and need be seen but once.
function known(rows) {
  const seen = new Set()
  for (const row of rows) {
    const [a, b] = row.cells.slice(-2)
    if (!row.differs || !a || !b || b.kind !== 'model-request' || a.kind !== b.kind) continue
    const what = `${b.agent ?? ''} ${changedParts(b, a)}`
    if (seen.has(what)) row.same = row.again = true
    seen.add(what)
  }
  return rows
}

// before is where a decision of an agent stands that the reference does not have: after what was
// decided before it.
function before(decision, lane, places) {
  const until = decision ? lane.indexOf(decision) : 0
  for (let i = until - 1; i >= 0; i--) {
    const at = places.get(nameOf(lane[i]))
    if (at !== undefined) return at
  }
  return -1
}

// withObserved adds the observed decisions to the rows of the other lanes: beside the ones that they
// stand with, or, if there are none, in rows that have room for them.
function withObserved(rows, pairs) {
  const beside = new Map(), after = new Map()
  let last = null
  for (const [reference, observed] of pairs) {
    if (reference) {
      last = reference
      if (observed) beside.set(reference, observed)
    } else {
      after.set(last, [...after.get(last) ?? [], observed])
    }
  }
  const out = []
  let free = after.get(null) ?? []
  const rest = () => out.push(...free.map((d) => [d, null, null]))
  for (const [, reference, candidate] of rows) {
    if (reference) {
      rest()
      free = after.get(reference) ?? []
      out.push([beside.get(reference) ?? null, reference, candidate])
    } else {
      const i = free.findIndex((d) => d.kind === candidate.kind)
      if (i > 0) out.push(...free.slice(0, i).map((d) => [d, null, null]))
      out.push([i < 0 ? null : free[i], null, candidate])
      free = free.slice(i + 1)
    }
  }
  rest()
  return out
}

// firstOf is the row of the difference that the lab has named, -1 if no decision differs.
export function firstOf(rows, difference, agent) {
  const differ = rows.map((row, i) => [row, i]).filter(([row]) => row.differs)
  if (!differ.length) return -1
  const is = ([{ cells }]) => cells.slice(-2).some((d) => d && d.kind === difference?.kind && (d.agent || agent) === difference.agent)
  const there = ([{ cells }]) => cells.at(-2)?.sequence === difference?.sequence
  const behaves = ([{ cells }]) => cells.slice(-2).some((d) => d && d.kind !== 'model-request')
  const acts = ([{ cells }]) => cells.slice(-2).some((d) => d && !['model-request', 'model-answer', 'tool-result'].includes(d.kind))
  const all = [(r) => is(r) && there(r), is, (r) => acts(r) && there(r), (r) => behaves(r) && there(r), behaves, () => true]
  const found = all.map((fits) => differ.find(fits)).find(Boolean)
  return found[1]
}
