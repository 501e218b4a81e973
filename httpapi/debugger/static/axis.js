// Where things are on the timeline: by record or by time. Both axes run through
// the points that the timeline contains and are straight between them. What
// says nothing takes little room: sequences that other sessions have, and the
// time in which nobody did anything.

const SILENT = new Set(['run', 'step', 'child', 'suspended', 'approval', 'client_tool'])
const CALLS = new Set(['tool', 'approval', 'client_tool'])
const LEAST_CALL = 4 // records that a call is wide: it has few and matters
const UNSEEN_RECORDS = 3 // the most that an interval without blocks is wide
const LEAST_PAUSE_MS = 1000

// createAxis returns {kind, length, x, left, sequence, time, breaks}. Its unit
// is a record or a millisecond; a record n ends at x(n).
export function createAxis(timeline, kind) {
  const points = pointsOf(timeline)
  const n = points.length
  const xs = new Float64Array(n)
  const breaks = []
  if (n > 1) {
    const { records, busy, calls } = densities(timeline, points)
    const pause = kind === 'time' ? pauseOf(points, busy) : 0
    for (let i = 1; i < n; i++) {
      const ds = points[i].sequence - points[i - 1].sequence
      const dt = points[i].at - points[i - 1].at
      let width
      if (kind === 'time') {
        width = busy[i] ? dt : Math.min(dt, pause)
        if (width < dt) breaks.push({ from: xs[i - 1], to: xs[i - 1] + width, ms: dt })
      } else {
        width = Math.max(calls[i] ? LEAST_CALL : 1, records[i] > 0 ? ds * Math.min(1, records[i]) : Math.min(ds, UNSEEN_RECORDS))
      }
      xs[i] = xs[i - 1] + width
    }
  }
  const length = Math.max(1, n ? xs[n - 1] : 1)

  // before is the last point at or before v, by a key.
  const before = (v, key) => {
    let lo = 0, hi = n - 1
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1
      if (key(mid) <= v) lo = mid
      else hi = mid - 1
    }
    return lo
  }
  const along = (sequence, of) => {
    if (n === 0) return 0
    const i = before(sequence, (k) => points[k].sequence)
    if (i === n - 1 || sequence <= points[i].sequence) return of(i)
    const part = (sequence - points[i].sequence) / (points[i + 1].sequence - points[i].sequence)
    return of(i) + part * (of(i + 1) - of(i))
  }
  const x = (sequence) => along(sequence, (i) => xs[i])
  return {
    kind, length, breaks, x,
    // left is where a record begins.
    left: (sequence) => kind === 'time' ? x(sequence) : Math.max(0, x(sequence) - 1),
    sequence(at) {
      if (n === 0) return 0
      const i = before(at, (k) => xs[k])
      if (i === n - 1) return points[i].sequence
      const part = Math.min(1, Math.max(0, (at - xs[i]) / (xs[i + 1] - xs[i] || 1)))
      return points[i].sequence + Math.round(part * (points[i + 1].sequence - points[i].sequence))
    },
    time: (sequence) => along(sequence, (i) => points[i].at),
    // timeAt is the time that lies at x.
    timeAt(at) {
      if (n === 0) return 0
      const i = before(at, (k) => xs[k])
      if (i === n - 1) return points[i].at
      return points[i].at + (at - xs[i]) / (xs[i + 1] - xs[i] || 1) * (points[i + 1].at - points[i].at)
    },
    first: n > 1 ? points[1].sequence : 0,
  }
}

// pointsOf are the sequences whose times are known, in order, with the place
// before the first record in front.
function pointsOf(t) {
  const at = new Map()
  const note = (sequence, ms) => {
    if (sequence > 0 && !(at.get(sequence) >= ms)) at.set(sequence, ms)
  }
  for (const s of t.spans) {
    note(s.from, s.startedAt)
    note(s.to, s.endedAt)
  }
  for (const m of t.marks) note(m.sequence, m.at)
  if (t.head > 0) note(t.head, t.updatedAt)
  const points = [...at].map(([sequence, at]) => ({ sequence, at })).sort((a, b) => a.sequence - b.sequence)
  if (points.length === 0) return []
  for (let i = 1; i < points.length; i++) points[i].at = Math.max(points[i].at, points[i - 1].at)
  return [{ sequence: points[0].sequence - 1, at: points[0].at }, ...points]
}

// densities returns, for each interval that ends at a point, how many of its sequences
// belong to the session, whether an agent was at work, and whether a call was in
// progress.
function densities(t, points) {
  const index = new Map(points.map((p, i) => [p.sequence, i]))
  const records = new Float64Array(points.length + 1)
  const busy = new Float64Array(points.length + 1)
  const calls = new Float64Array(points.length + 1)
  for (const s of t.spans) {
    const from = index.get(s.from), to = index.get(s.to)
    if (from === undefined || to === undefined || to <= from) continue
    if (CALLS.has(s.kind)) {
      calls[from + 1]++
      calls[to + 1]--
    }
    if (SILENT.has(s.kind)) continue
    const density = Math.min(1, Math.max(1, s.records - 1) / (s.to - s.from))
    records[from + 1] += density
    records[to + 1] -= density
    busy[from + 1]++
    busy[to + 1]--
  }
  for (let i = 1; i < points.length; i++) {
    records[i] += records[i - 1]
    busy[i] += busy[i - 1]
    calls[i] += calls[i - 1]
    if (records[i] < 1e-9) records[i] = 0
  }
  return { records, busy, calls }
}

// pauseOf is the most that a pause is wide: a part of the time that was spent,
// in steps, so that it changes seldom while the session continues.
function pauseOf(points, busy) {
  let worked = 0
  for (let i = 1; i < points.length; i++) {
    const dt = points[i].at - points[i - 1].at
    if (busy[i] || dt < LEAST_PAUSE_MS) worked += dt
  }
  return Math.max(LEAST_PAUSE_MS, 2 ** Math.floor(Math.log2(Math.max(1, worked * 0.08))))
}
