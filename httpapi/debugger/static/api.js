// The server's routes. The page lies where the server is mounted, and so do
// they.

import { parse } from './exact.js'

const TOKEN = 'helixd-token'

// A connection whose other end is gone says nothing at all. So an answer has to
// be whole in time, and records have to continue: where there are none, the server
// sends heartbeats.
const READ_MS = 60_000 // of what is asked for
const WRITE_MS = 120_000 // of what is to be done
const SILENCE_MS = 45_000 // three of the server's heartbeats

// UNREACHABLE_NAME is the code of what browsers can't ask for: they take the
// dots out of the address, however they are written.
export const UNREACHABLE_NAME = 'UNREACHABLE_NAME'

// Failure is an answer that refuses, or that never came: then its status is 0.
export class Failure extends Error {
  constructor(message, { code = '', status = 0, detail, requestId } = {}) {
    super(message)
    Object.assign(this, { code, status, detail, requestId })
  }
}

// createAPI returns the routes. onUnauthorized is called when the server wants
// to know who asks.
export function createAPI(onUnauthorized) {
  const base = new URL('.', document.baseURI)
  let token = stored()

  async function ask(method, path, { params, body, signal, limit, accept = 'application/json', headers } = {}) {
    const url = new URL(path.replace(/^\//, ''), base)
    for (const [name, value] of Object.entries(params ?? {})) {
      for (const v of Array.isArray(value) ? value : [value]) {
        if (v !== undefined && v !== null && v !== '') url.searchParams.append(name, v)
      }
    }
    const init = { method, signal: AbortSignal.any([signal, limit].filter(Boolean)), cache: 'no-store', credentials: 'same-origin', headers: { Accept: accept, ...headers } }
    const used = token
    if (used) init.headers.Authorization = `Bearer ${used}`
    if (body !== undefined) {
      init.body = JSON.stringify(body)
      init.headers['Content-Type'] = 'application/json'
    }
    let response
    try {
      response = await fetch(url, init)
    } catch (err) {
      if (signal?.aborted) throw err
      throw new Failure('The server cannot be reached.', { code: 'UNREACHABLE' })
    }
    if (response.ok) return response
    let told = {}
    try {
      told = parse(await response.text())
    } catch { /* a proxy in front of the server may answer with anything */ }
    if (response.status === 401 && used === token) onUnauthorized(Boolean(used))
    throw new Failure(told.error || `The server answered ${response.status}.`,
      { code: told.code, status: response.status, detail: told.detail, requestId: told.requestId })
  }

  async function text(method, path, options = {}) {
    const response = await ask(method, path, { limit: AbortSignal.timeout(method === 'GET' ? READ_MS : WRITE_MS), ...options })
    try {
      return await response.text()
    } catch (err) {
      if (options.signal?.aborted) throw err
      throw new Failure('The connection broke off.', { code: 'UNREACHABLE' })
    }
  }

  return {
    get: async (path, params, signal) => parse(await text('GET', path, { params, signal })),
    post: async (path, body, options) => parse(await text('POST', path, { body: body ?? {}, ...options })),
    del: async (path, options) => parse(await text('DELETE', path, options)),
    text: (path, params, signal) => text('GET', path, { params, signal }),

    // ndjson calls onRecord with each line until the answer ends. It fails when
    // that breaks off, or when nothing comes any more.
    async ndjson(path, params, onRecord, signal) {
      const silent = new AbortController()
      let waiting
      const heard = () => {
        clearTimeout(waiting)
        waiting = setTimeout(() => silent.abort(), SILENCE_MS)
      }
      heard()
      try {
        const response = await ask('GET', path, { params, signal, limit: silent.signal, accept: 'application/x-ndjson' })
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
        const rest = new Lines()
        for (;;) {
          let part
          try {
            part = await reader.read()
          } catch (err) {
            if (signal?.aborted) throw err
            throw new Failure('The connection broke off.', { code: 'UNREACHABLE' })
          }
          heard()
          if (part.done) break
          for (const line of rest.take(part.value)) if (line) onRecord(parse(line))
        }
        const last = rest.end()
        if (last.trim()) onRecord(parse(last))
      } finally {
        clearTimeout(waiting)
        silent.abort() // if onRecord has failed, the rest is not read
      }
    },

    // raw is the response itself, for other kinds of answers. They end in time
    // too.
    raw: (method, path, options) => ask(method, path, { limit: AbortSignal.timeout(WRITE_MS), ...options }),
    hasToken: () => token !== '',
    setToken(value) {
      token = value.trim()
      try {
        if (token) sessionStorage.setItem(TOKEN, token)
        else sessionStorage.removeItem(TOKEN)
      } catch { /* then it lasts until the page is left */ }
    },
  }
}

// Lines puts lines together. Each piece is searched once: a line may come in many.
class Lines {
  #begun = []

  // take returns the lines that a piece completes.
  take(piece) {
    const lines = []
    let from = 0
    for (let end; (end = piece.indexOf('\n', from)) >= 0; from = end + 1) {
      this.#begun.push(piece.slice(from, end))
      lines.push(this.end())
    }
    this.#begun.push(piece.slice(from))
    return lines
  }

  // end returns what has come of the line that is not complete.
  end() {
    const line = this.#begun.join('')
    this.#begun = []
    return line
  }
}

function stored() {
  try {
    return sessionStorage.getItem(TOKEN) ?? ''
  } catch {
    return ''
  }
}

// sessionPath is the path of a session, or of something of it.
export function sessionPath(id, of = '') {
  if (id === '.' || id === '..') throw new Failure(`No browser can ask for a session whose id is ${id}; the command line can.`, { code: UNREACHABLE_NAME, status: 404 })
  return `/sessions/${encodeURIComponent(id)}${of ? `/${of}` : ''}`
}
