// The states of sessions that the panels share: what is folded up to a record
// does not change, so a few of them are kept.

import { sessionPath } from './api.js'
import { parse } from './exact.js'

// How much is kept: so many states, and so many characters of them, but two in
// any case.
const KEPT = 16
const KEPT_CHARACTERS = 8e6

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
    app.on('reset', () => this.held.clear())
  }

  // get resolves to the state of a session at n. Whoever asks for a state that
  // is on its way gets the same.
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
    entry.state = this.app.api.text(sessionPath(session, 'state'), { at: n }).then((text) => {
      entry.size = text.length
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
// one is done next.
export class Latest {
  #do
  #next
  #busy = false

  constructor(act) {
    this.#do = act
  }

  ask(what) {
    this.#next = { what }
    if (!this.#busy) this.#go()
  }

  async #go() {
    this.#busy = true
    while (this.#next) {
      const { what } = this.#next
      this.#next = undefined
      try {
        await this.#do(what, () => this.#next === undefined)
      } catch (err) {
        console.error(err) // what is asked for next is done all the same
      }
    }
    this.#busy = false
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

// messageCount counts the messages of a tree.
export const messageCount = (tree) => sessionsOf(tree).reduce((n, { session: s }) => n + (s.messages?.length ?? 0), 0)
