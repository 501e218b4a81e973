// The states of sessions that the panels share: what is folded up to a record
// does not change, so a few of them are kept.

import { sessionPath } from './api.js'
import { parse } from './exact.js'

// How much is kept: so many states, and so many characters of them, but two in
// any case.
const KEPT = 16
const KEPT_CHARACTERS = 8e6
const LARGE_CHARACTERS = 500_000

// drawing resolves when the page has had the time to draw a frame.
export const drawing = () => new Promise((resolve) => setTimeout(resolve))

// How long what is live rests: a multiple of what it took.
const PAUSE = 4
const MOST_PAUSE_MS = 2000

const all = new WeakMap() // by app

// statesOf returns the states of a page.
export function statesOf(app) {
  if (!all.has(app)) all.set(app, new States(app))
  return all.get(app)
}

class States {
  constructor(app) {
    this.app = app
    this.held = new Map() // by place, the last used one last
    // A session that was erased and begun again has the same name.
    for (const event of ['session', 'reset']) app.on(event, () => this.held.clear())
  }

  // get resolves to the state of a session at n. A second request for a state that
  // is being loaded gets the same promise.
  get(session, n) {
    const place = `${n} ${session}`
    const entry = this.held.get(place) ?? this.#load(session, n)
    this.held.delete(place)
    this.held.set(place, entry)
    entry.state.then(() => this.#shrink(), () => this.held.get(place) === entry && this.held.delete(place))
    return entry.state
  }

  #load(session, n) {
    const entry = { size: 0 }
    entry.state = this.app.api.text(sessionPath(session, 'state'), { at: n }).then(async (text) => {
      entry.size = text.length
      if (text.length > LARGE_CHARACTERS) await drawing() // to take it apart takes a frame's time by itself
      return parse(text).state
    })
    return entry
  }

  #shrink() {
    let size = 0
    for (const entry of this.held.values()) size += entry.size
    for (const [place, entry] of this.held) {
      if (this.held.size <= 2 || (this.held.size <= KEPT && size <= KEPT_CHARACTERS)) return
      size -= entry.size
      this.held.delete(place)
    }
  }

  has(session, n) {
    return this.held.has(`${n} ${session}`)
  }
}

// Latest has one thing done at a time: of what is asked for meanwhile, the last
// one is done next. What is live is done less often the longer it takes, so that
// a large session that runs leaves room for all else. What one session does not answer keeps no other
// one waiting.
export class Latest {
  #do
  #next
  #busy = false
  #was = '' // what was live last
  #again = 0 // when it may be done again
  #hurry = null // ends the wait for that
  #shows = 0 // rises when another session is shown

  // act is given what was asked for and two functions: whether nothing has been asked for since, and
  // whether another session has been shown since, so that what comes is not to be shown.
  constructor(app, act) {
    this.#do = act
    app.on('session', () => {
      this.#shows++
      this.#busy = false
      this.#next = undefined
      this.#hurry?.()
    })
  }

  // ask names what is live, if it is, so that something else does not wait.
  ask(what, live = '') {
    this.#next = { what, live }
    if (live !== this.#was) this.#hurry?.()
    if (!this.#busy) this.#go()
  }

  async #go() {
    const shows = this.#shows
    const dropped = () => this.#shows !== shows
    this.#busy = true
    while (this.#next) {
      if (this.#next.live && this.#next.live === this.#was) await this.#rest()
      if (dropped()) return
      const { what, live } = this.#next
      this.#next = undefined
      const began = performance.now()
      try {
        await this.#do(what, () => !dropped() && this.#next === undefined, dropped)
      } catch (err) {
        console.error(err) // what is asked for next is done all the same
      }
      if (dropped()) return
      const now = performance.now()
      const took = live === this.#was ? now - began : 0 // the first one takes longer than those after it
      this.#was = live
      this.#again = now + Math.min(PAUSE * took, MOST_PAUSE_MS)
    }
    this.#busy = false
  }

  #rest() {
    const ms = this.#again - performance.now()
    if (ms <= 0) return undefined
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#hurry = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

// sessionsOf returns the sessions of a state's tree, the root first, children
// beneath their parents.
export function sessionsOf(tree) {
  const found = []
  const children = Object.values(tree.children ?? {})
  const add = (s, depth) => {
    if (found.some((f) => f.session === s)) return
    found.push({ session: s, depth })
    for (const c of children) if (c.child?.parentSessionId === s.sessionId) add(c, depth + 1)
  }
  add(tree, 0)
  for (const c of children) add(c, 1) // whose parent is not there
  return found
}

// agentOf returns a session of a tree, or undefined.
export const agentOf = (tree, id) => (tree.sessionId === id ? tree : Object.values(tree.children ?? {}).find((c) => c.sessionId === id))

// statusOf is a session's status in the protocol's words. In the folded state a session
// whose call is pending stays active: its stream says that it is paused.
export const statusOf = ({ status, streamStatus }) => (status === 'active' && streamStatus === 'paused' ? 'paused' : status)

// tones are the colours of the statuses.
export const tones = { active: 'live', paused: 'warn', interrupted: 'warn', completed: 'good', failed: 'bad' }

// messageCount counts the messages of a tree.
export const messageCount = (tree) => sessionsOf(tree).reduce((n, { session: s }) => n + (s.messages?.length ?? 0), 0)
