// What a lab has written: a row for each session, the sessions' lanes, and the report at its end.

import { sessionPath } from './api.js'
import { parse } from './exact.js'
import { statesOf } from './states.js'

// createLab reads a lab. Its rows grow whenever read is called again.
export function createLab(app, id) {
  let seen = 0 // records up to here are read
  const lab = { id, begun: null, rows: new Map(), report: null, version: 0 }

  // read reads what is new. The table's records alone: lanes are large.
  lab.read = async (signal) => {
    const to = app.head
    let last = seen
    await app.api.ndjson(sessionPath(id, 'records'), { type: 'custom', call: 'results', from: seen || undefined }, (r) => {
      last = r.sequence
      take(r.data)
    }, signal)
    seen = Math.max(to, last)
    if (lab.report || app.timeline?.streamStatus !== 'ended') return
    lab.report = (await statesOf(app).get(id, app.head)).output ?? null
    lab.version++
  }

  function take({ eventName, data }) {
    if (eventName === 'lab-begun') lab.begun = data
    else if (eventName === 'lab-result' && data?.result) lab.rows.set(String(data.result.session), { ...data.result, stored: data.stored })
    lab.version++
  }

  // lanes returns the lanes of a session with all of their decisions.
  lab.lanes = async (session, signal) => {
    let text = '', whole = null
    await app.api.ndjson(sessionPath(id, 'records'), { type: 'custom', call: session }, ({ data: { eventName, data } }) => {
      if (eventName !== 'lab-lanes') return
      text = data.part === 1 ? data.text : text + data.text
      if (data.part === data.parts) whole = text
    }, signal)
    return whole === null ? null : parse(whole)
  }

  // moments finds the records of a session in this log by the sequences that they had where they
  // were recorded first. It returns null if the log has no such session.
  lab.moments = async (session, wanted, signal) => {
    const byOrigin = new Map(), here = new Set()
    try {
      await app.api.ndjson(sessionPath(session, 'records'), { kind: 'fact', dead: 1 }, (r) => {
        byOrigin.set(r.origin?.sequence ?? r.sequence, r.sequence)
        here.add(r.sequence)
      }, signal)
    } catch (err) {
      if (err.status === 404 || err.status === 403 || err.status === 410) return null
      throw err
    }
    // A cohort of this very log knows its sequences, even of a session that was imported before.
    if (wanted.some((n) => !byOrigin.has(n)) && wanted.every((n) => here.has(n))) return new Map(wanted.map((n) => [n, n]))
    return byOrigin
  }
  return lab
}
