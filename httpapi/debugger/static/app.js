// What the page shows: which session, at which record, beside what. The address
// says it all, so that a link to a moment is a link.
//
// The parts of the page know each other by this alone. Events:
//   session   another session is shown, or none
//   at        the position has moved, or what it is compared with
//   timeline  there is news of the session: its timeline has grown or changed
//   agent     another agent of the tree is looked at
//   part      another session of the lab that is shown is looked at, or all of them; or its records
//   live      the connection has changed: app.connection
//   failures  what failed in the session has changed
//   reveal    the conversation is to show what the record at the position has made
//   sessions  what is listed may have changed: a session was begun
//   reset     what is known of sessions counts no more: the log is another one,
//             or somebody else asks

import { createAPI, sessionPath } from './api.js'
import { follow } from './live.js'

const WRITE_ADDRESS_MS = 250 // browsers refuse pages that write it all the time

// createApp returns the state. Nothing happens before start.
export function createApp(onUnauthorized) {
  const listeners = new Map()
  let live = null // of the session that is shown
  let writing = 0

  const app = {
    session: null,
    at: null, // null: follows the head
    head: 0,
    timeline: null, // null until it has come
    compareTo: null, // {session, at}
    part: null, // of a lab: the session that is looked at
    plain: false, // the lab is shown as any session is
    drags: false, // the position was moved by a pointer last
    agent: null, // whose conversation is shown, of the session's tree; null: the root's
    connection: { state: 'idle', error: null }, // idle, loading, live, retrying, gone, refused
    api: createAPI((had) => onUnauthorized(app, had)),

    effectiveAt: () => app.at ?? app.head,

    on(event, fn) {
      if (!listeners.has(event)) listeners.set(event, new Set())
      listeners.get(event).add(fn)
      return () => listeners.get(event).delete(fn)
    },

    emit(event) {
      for (const fn of listeners.get(event) ?? []) {
        try {
          fn()
        } catch (err) {
          console.error(err) // one part of the page must not stop the others
        }
      }
    },

    // go shows something else, as a step that the browser's back undoes. What
    // is left out stays, within a session: {at: null} follows the head.
    go(target) {
      app.drags = false
      move(target, 'push')
    },

    // scrub moves the position any number of times: one step back undoes
    // it all. drags: by a pointer that may move on at once.
    scrub(at, drags = false) {
      app.drags = drags
      move({ at }, 'later')
    },

    // look shows another agent of the tree.
    look(agent) {
      if (agent === app.session) agent = null
      if (agent === app.agent) return
      app.agent = agent
      app.emit('agent')
    },

    // refresh asks for the timeline's news now, after an action.
    refresh() { live?.refresh() },

    start() {
      addEventListener('popstate', () => move(parse(location.hash), 'none'))
      addEventListener('hashchange', () => move(parse(location.hash), 'none'))
      move(parse(location.hash), 'none')
    },

    // signedIn starts again as the user of the token.
    signedIn() {
      live?.stop()
      app.emit('reset')
      live = app.session === null ? null : follow(app)
      app.emit('sessions')
      app.emit('session')
    },
  }

  function move(target, write) {
    const session = target.session === undefined ? app.session : target.session || null
    const another = session !== app.session
    const stay = (value, now) => value !== undefined ? value : another ? null : now
    let at = stay(target.at, app.at)
    const compareTo = stay(target.compareTo, app.compareTo)
    const part = stay(target.part, app.part)
    const plain = stay(target.plain, app.plain) ?? false
    if (at !== null) at = Math.max(0, Math.floor(Number(at) || 0))
    if (at !== null && !another && app.timeline) at = Math.min(at, app.head)
    const parted = part !== app.part || plain !== app.plain
    const moved = another || at !== app.at || JSON.stringify(compareTo) !== JSON.stringify(app.compareTo)
    if (!moved && !parted) return
    if (write === 'push') flush() // what was scrubbed to before stays its own step
    else drop()
    Object.assign(app, { session, at, compareTo, part, plain })
    if (another) {
      live?.stop()
      Object.assign(app, { head: 0, timeline: null, agent: null })
      live = session === null ? null : follow(app)
      if (!live) app.connection = { state: 'idle', error: null }
    }
    if (write === 'push') history.pushState(null, '', address(app))
    if (write === 'later') writing = setTimeout(flush, WRITE_ADDRESS_MS)
    if (another) app.emit('session')
    if (parted) app.emit('part')
    if (moved) app.emit('at')
  }

  function drop() {
    clearTimeout(writing)
    writing = 0
  }

  function flush() {
    if (!writing) return
    drop()
    history.replaceState(null, '', address(app))
  }

  return app
}

// address is the link to what is shown, or would be.
export function address({ session, at, compareTo, part, plain }) {
  if (session === null || session === undefined) return '#/'
  let to = `#/${encodeURIComponent(session)}`
  if (part !== null && part !== undefined) to += `+${encodeURIComponent(part)}`
  if (compareTo) {
    to += `@${at ?? 'live'}`
    to += compareTo.session === session ? `..${compareTo.at}` : `vs/${encodeURIComponent(compareTo.session)}@${compareTo.at}`
  } else if (at !== null && at !== undefined) {
    to += `@${at}`
  } else if (plain) {
    to += '@live'
  }
  return to
}

const form = /^#\/([^@+]+)(?:\+([^@]+))?(?:@(live|\d+)(?:\.\.(\d+)|vs\/([^@]+)@(\d+))?)?$/

// parse reads such a link. What it can't read shows no session.
export function parse(hash) {
  const [, session, part, at, to, other, otherAt] = form.exec(hash) ?? []
  const none = { session: null, at: null, compareTo: null, part: null, plain: false }
  try {
    if (!session) return none
    const id = decodeURIComponent(session)
    let compareTo = null
    if (to !== undefined) compareTo = { session: id, at: Number(to) }
    if (other !== undefined) compareTo = { session: decodeURIComponent(other), at: Number(otherAt) }
    return { session: id, at: at === undefined || at === 'live' ? null : Number(at), compareTo, part: part === undefined ? null : decodeURIComponent(part), plain: at === 'live' && !compareTo }
  } catch {
    return none
  }
}

export { sessionPath }
