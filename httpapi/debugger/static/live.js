// Keeps the timeline of the shown session up to date: the log's records signal changes,
// and the timeline's route returns them. It continues across restarts of the server.

import { sessionPath } from './api.js'

const REFRESH_MS = 250 // at most one request in that time
const POLL_MS = 1000 // where the log can't be followed
const FIRST_RETRY_MS = 250
const LAST_RETRY_MS = 5000

// follow begins; stop ends it for good.
export function follow(app) {
  const session = app.session
  const end = new AbortController()
  let asked = 0 // when news was last asked for
  let timer = 0, asking = false, again = false
  let loading = null // the one request under way: of two answers, the older one could come last

  const say = (state, error = null) => {
    if (end.signal.aborted || (app.connection.state === state && app.connection.error === error)) return
    app.connection = { state, error }
    app.emit('live')
  }

  // refresh asks for what is new, now or soon.
  function refresh() {
    if (asking) again = true
    else if (!timer) timer = setTimeout(ask, Math.max(0, asked + REFRESH_MS - performance.now()))
  }

  async function ask() {
    timer = 0
    asking = true
    try {
      await load()
    } catch (err) {
      if (!end.signal.aborted) broken(err)
    }
    asking = false
    if (again && !end.signal.aborted) {
      again = false
      refresh()
    }
  }

  function load() {
    loading ??= fetchNews().finally(() => { loading = null })
    return loading
  }

  async function fetchNews() {
    asked = performance.now()
    let anew = false
    let got = await news(app.timeline ? app.head : 0)
    if (end.signal.aborted) return
    if (!got || (app.timeline && got.startedAt !== app.timeline.startedAt)) {
      anew = true // another session by the same name, or a log that lost its end
      got = await news(0)
      if (end.signal.aborted) return
      app.timeline = null
      app.head = 0
      app.emit('reset')
    }
    const before = app.head
    app.timeline = merge(app.timeline, got)
    app.head = got.head
    app.emit('timeline')
    if (anew || (app.at === null ? got.head !== before : app.at > got.head)) {
      if (app.at !== null && app.at > got.head) app.at = null
      app.emit('at')
    }
  }

  // news is what has come after from, or null when the log ends before it.
  async function news(from) {
    try {
      return await app.api.get(sessionPath(session, 'timeline'), { from: from || undefined }, end.signal)
    } catch (err) {
      if (err.code !== 'CURSOR_AHEAD' || !from) throw err
      return null
    }
  }

  // clear forgets what was shown: the session is erased, or no more the caller's.
  function clear() {
    app.timeline = null
    app.head = 0
    app.emit('reset')
    app.emit('timeline')
    app.emit('at')
  }

  let wake = null // ends the wait between two tries
  let problem = null
  function broken(err) {
    problem = err
    wake?.()
  }

  async function run() {
    say('loading')
    let retry = FIRST_RETRY_MS
    while (!end.signal.aborted) {
      await shown()
      try {
        await load()
        retry = FIRST_RETRY_MS
        say('live')
        await listen()
      } catch (err) {
        if (end.signal.aborted) return
        const final = err.status === 404 ? 'gone' : err.status === 403 || err.status === 401 ? 'refused' : ''
        if (final && app.timeline) clear()
        say(final || 'retrying', err)
        if (err.status === 401) return // signing in starts it again
        await pause(final ? LAST_RETRY_MS : retry * (0.75 + Math.random() / 2))
        retry = Math.min(retry * 2, LAST_RETRY_MS)
      }
    }
  }

  // shown waits while nobody looks: a browser has few connections to a server,
  // and all of its tabs share them.
  function shown() {
    return new Promise((resolve) => {
      const look = () => {
        if (document.hidden && !end.signal.aborted) return
        document.removeEventListener('visibilitychange', look)
        end.signal.removeEventListener('abort', look)
        resolve()
      }
      document.addEventListener('visibilitychange', look)
      end.signal.addEventListener('abort', look)
      look()
    })
  }

  // listen returns when the server ended it, or nobody looks any more, and fails
  // when it broke off.
  async function listen() {
    const began = performance.now()
    let heard = false
    const stop = new AbortController()
    const either = AbortSignal.any([end.signal, stop.signal])
    problem = null
    wake = () => stop.abort()
    const leave = () => { if (document.hidden) stop.abort() }
    document.addEventListener('visibilitychange', leave)
    try {
      await app.api.ndjson(sessionPath(session, 'records'), { follow: 1, dead: 1, from: app.head || undefined }, () => {
        heard = true
        refresh()
      }, either)
    } catch (err) {
      if (problem || !document.hidden) throw problem ?? err
    } finally {
      wake = null
      document.removeEventListener('visibilitychange', leave)
    }
    if (performance.now() - began < POLL_MS && !heard) await pause(POLL_MS)
  }

  function pause(ms) {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(waiting)
        end.signal.removeEventListener('abort', done)
        removeEventListener('online', done)
        resolve()
      }
      const waiting = setTimeout(done, ms)
      end.signal.addEventListener('abort', done)
      addEventListener('online', done)
    })
  }

  run()
  return {
    refresh,
    stop() {
      clearTimeout(timer)
      end.abort()
    },
  }
}

// merge adds news to a timeline. Spans and marks keep who they are.
function merge(old, news) {
  if (!old) return { ...news, spans: byStart(news.spans ?? []), marks: byStart(news.marks ?? []), lanes: news.lanes ?? [], version: 1 }
  const version = old.version + 1
  const spans = join(old.spans, news.spans ?? [], (s) => s.id)
  const marks = join(old.marks, news.marks ?? [], (m) => `${m.sequence} ${m.kind} ${m.lane} ${m.id ?? ''}`)
  return { ...old, ...news, lanes: news.lanes ?? old.lanes, spans, marks, version }
}

function join(old, news, key) {
  if (news.length === 0) return old
  const all = new Map(old.map((x) => [key(x), x]))
  for (const x of news) all.set(key(x), x)
  return byStart([...all.values()])
}

const start = (x) => x.from ?? x.sequence

function byStart(list) {
  return list.sort((a, b) => start(a) - start(b))
}
