// What failed in a session and what was refused: tool calls that failed, were denied or
// came back with a refusal, and runs that failed.

import { Latest, sessionsOf, statesOf } from './states.js'

const REST_MS = 300 // the moment that is shown goes first

const refusals = new Set(['declined', 'denied', 'refused', 'rejected', 'failed', 'failure', 'error', 'forbidden', 'unauthorized'])

// verdictOf says how a call went: done, failed or denied, or with which word its result
// refuses. Tools that talk to other services often return a refusal as their result.
export function verdictOf({ error, denial, result }) {
  if (denial) return 'denied'
  if (error) return 'failed'
  if (result === null || typeof result !== 'object') return 'done'
  const word = [result.status, result.outcome].map((w) => String(w).toLowerCase()).find((w) => refusals.has(w))
  return word ?? (result.ok === false || result.success === false || result.isError === true ? 'failed' : 'done')
}

// isBad tells whether a call's status is a failure or a refusal.
export const isBad = (status) => refusals.has(status)

const caused = new WeakMap() // by timeline: its spans that have a cause

// causeOf is what a server did that a failed call needed, as operators want to know it. The
// state has it not: the model does not see it.
export function causeOf(app, agent, { toolCallId, sequence }) {
  const t = app.timeline
  if (!t) return ''
  if (!caused.has(t)) caused.set(t, t.spans.filter((s) => s.cause))
  return caused.get(t).find((s) => s.lane === agent && s.callId === toolCallId && s.from <= sequence && sequence <= s.to)?.cause ?? ''
}

// failureOf says what a mark is of: a run, or what it needed and may have had at another try.
function failureOf({ kind, label }, ofRun) {
  const facts = kind === 'error' ? label : '' // the label of an abort is a person's reason
  const [, workspace] = /^workspace (.*)$/s.exec(facts) ?? []
  if (workspace) return { what: 'workspace failed', why: workspace }
  const [, attempt] = /^attempt \d+: (.*)$/s.exec(facts) ?? []
  const [, code, why] = /^([a-z_]+): (.*)$/s.exec(attempt ?? label) ?? [null, kind, attempt ?? label]
  return { what: attempt ? 'model call failed' : ofRun, why, code }
}

const all = new WeakMap() // by app

// failuresOf returns the failures of the session that is shown. When they change, the
// page gets the event failures.
export function failuresOf(app) {
  if (!all.has(app)) all.set(app, new Failures(app))
  return all.get(app)
}

class Failures {
  list = [] // {sequence, agent, what, why, cause, code}, in order
  error = null // why the session failed
  #verdicts = new Map() // of calls whose result is a refusal, by lane and call
  #timer = 0

  constructor(app) {
    this.app = app
    const latest = new Latest(app, async ({ session, head }, last, dropped) => {
      const root = await statesOf(app).get(session, head).catch(() => null) // the moment says what is wrong
      if (root && !dropped() && app.timeline) this.#learn(root, app.timeline)
    })
    let known = ''
    const look = () => {
      const now = `${app.session} ${app.timeline?.startedAt} ${app.head}`
      if (!app.timeline || now === known) return
      known = now
      clearTimeout(this.#timer)
      const what = { session: app.session, head: app.head }
      this.#timer = setTimeout(() => latest.ask(what, app.timeline?.status === 'active' ? app.session : ''), app.at === null ? 0 : REST_MS)
    }
    const clear = () => {
      known = ''
      this.#clear()
    }
    app.on('session', clear)
    app.on('reset', clear)
    app.on('timeline', look)
    look()
  }

  #clear() {
    clearTimeout(this.#timer)
    Object.assign(this, { list: [], error: null })
    this.#verdicts.clear()
    this.app.emit('failures')
  }

  #learn(root, timeline) {
    const found = []
    this.#verdicts.clear()
    for (const { session: s } of sessionsOf(root)) {
      for (const m of s.messages ?? []) {
        const word = m.role === 'tool' ? verdictOf(m) : 'done'
        if (word === 'done') continue
        this.#verdicts.set(`${s.sessionId} ${m.toolCallId}`, word)
        const why = m.denial?.reason ?? m.error ?? m.result?.reason ?? m.result?.message ?? m.result?.error ?? ''
        found.push({ sequence: m.sequence, agent: s.sessionId, what: `${m.toolName.replace(/^subagent__/, '')} ${word}`, why: typeof why === 'string' ? why : JSON.stringify(why), cause: m.error ? causeOf(this.app, s.sessionId, m) : '', code: m.errorCode })
      }
    }
    let last = ''
    for (const m of timeline.marks) {
      if ((m.kind !== 'error' && m.kind !== 'abort') || m.struck || `${m.lane} ${m.label}` === last) continue
      last = `${m.lane} ${m.label}`
      found.push({ sequence: m.sequence, agent: m.lane, ...failureOf(m, m.lane === root.sessionId ? 'run failed' : 'sub-agent failed') })
    }
    this.list = found.sort((a, b) => a.sequence - b.sequence)
    this.error = root.error ?? null
    this.app.emit('failures')
  }

  // verdict is the word with which a call failed or was refused, if it was.
  verdict(span) { return span.callId && (span.kind === 'tool' || span.kind === 'client_tool' || span.kind === 'child') ? this.#verdicts.get(`${span.lane} ${span.callId}`) : undefined }

  // index is that of the failure at the position, or -1.
  index() { return this.list.findIndex((f) => f.sequence === this.app.effectiveAt()) }

  // go shows the next failure or the previous one; after the last one comes the first.
  go(direction) {
    const n = this.app.effectiveAt()
    const to = direction > 0 ? this.list.find((f) => f.sequence > n) ?? this.list[0] : this.list.findLast((f) => f.sequence < n) ?? this.list.at(-1)
    if (to) this.show(to)
  }

  show({ agent, sequence }) {
    this.app.look(agent)
    this.app.go({ at: sequence })
    this.app.emit('reveal')
  }
}
