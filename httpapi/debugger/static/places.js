// Where the position can go: to the next record, step, or thing of note.

import { sessionPath } from './api.js'
import { readBack } from './backwards.js'

const WINDOW = 300 // records that are asked for at once

// createPlaces returns {record, step, note}, each of which resolves to where the
// position goes from n in a direction, 1 or -1.
export function createPlaces(app) {
  let known // all records of a session with after < sequence <= to
  const forget = () => { known = { session: null, after: 0, to: 0, all: [] } }
  forget()
  for (const event of ['session', 'reset']) app.on(event, forget)

  async function records(n, direction) {
    const session = app.session // another one may be shown when the answer comes
    if (known.session !== session) known = { session, after: 0, to: 0, all: [] }
    if (direction > 0) {
      if (n >= known.after && n < known.to) {
        const next = known.all.find((s) => s > n)
        if (next) return next
      }
      const all = await read(session, { from: n, limit: WINDOW })
      if (all.length === 0) return Math.max(n, app.head)
      known = { session, after: n, to: all.at(-1), all }
      return all[0]
    }
    const within = n > known.after && n - 1 <= known.to ? known.all.findLast((s) => s < n) : undefined
    if (within) return within
    const { all, after } = await readBack((part) => read(session, part), n - 1, 1, (s) => s)
    if (all.length === 0) return 0
    known = { session, after, to: n - 1, all }
    return all.at(-1)
  }

  async function read(session, params) {
    const all = []
    await app.api.ndjson(sessionPath(session, 'records'), { ...params, dead: 1 }, (r) => all.push(r.sequence))
    return all
  }

  // among picks the next of some sequences.
  function among(sequences, n, direction) {
    const further = sequences.filter((s) => direction > 0 ? s > n : s < n)
    if (further.length === 0) return direction > 0 ? app.head : 0
    return further.reduce(direction > 0 ? (a, b) => Math.min(a, b) : (a, b) => Math.max(a, b)) // too many for arguments
  }

  const spans = () => app.timeline?.spans ?? []
  return {
    record: records,
    step: async (n, direction) => among(spans().filter((s) => s.kind === 'step').map((s) => s.to), n, direction),
    note: async (n, direction) => among(
      [...spans().filter((s) => s.kind !== 'run').map((s) => s.from), ...(app.timeline?.marks ?? []).map((m) => m.sequence)], n, direction),
  }
}
