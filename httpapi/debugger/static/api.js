// The server's routes. The page lies where the server is mounted, and so do
// they.

import { parse } from './exact.js'

const TOKEN = 'helixd-token'

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

  async function ask(method, path, { params, body, signal, accept = 'application/json', headers } = {}) {
    const url = new URL(path.replace(/^\//, ''), base)
    for (const [name, value] of Object.entries(params ?? {})) {
      for (const v of Array.isArray(value) ? value : [value]) {
        if (v !== undefined && v !== null && v !== '') url.searchParams.append(name, v)
      }
    }
    const init = { method, signal, cache: 'no-store', credentials: 'same-origin', headers: { Accept: accept, ...headers } }
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
    } catch { /* what stands in front of the server may answer with anything */ }
    if (response.status === 401 && used === token) onUnauthorized(Boolean(used))
    throw new Failure(told.error || `The server answered ${response.status}.`,
      { code: told.code, status: response.status, detail: told.detail, requestId: told.requestId })
  }

  const read = async (response) => parse(await (await response).text())

  return {
    get: (path, params, signal) => read(ask('GET', path, { params, signal })),
    post: (path, body, options) => read(ask('POST', path, { body: body ?? {}, ...options })),
    del: (path, options) => read(ask('DELETE', path, options)),

    // ndjson calls onRecord with each line until the answer ends. It fails when
    // that breaks off.
    async ndjson(path, params, onRecord, signal, onOpen) {
      const response = await ask('GET', path, { params, signal, accept: 'application/x-ndjson' })
      onOpen?.()
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
      let rest = ''
      for (;;) {
        let part
        try {
          part = await reader.read()
        } catch (err) {
          if (signal?.aborted) throw err
          throw new Failure('The connection broke off.', { code: 'UNREACHABLE' })
        }
        if (part.done) break
        const lines = (rest + part.value).split('\n')
        rest = lines.pop()
        for (const line of lines) if (line) onRecord(parse(line))
      }
      if (rest.trim()) onRecord(parse(rest))
    },

    // raw is the response itself, for other kinds of answers.
    raw: ask,
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

function stored() {
  try {
    return sessionStorage.getItem(TOKEN) ?? ''
  } catch {
    return ''
  }
}

// sessionPath is the path of a session, or of something of it.
export function sessionPath(id, of = '') {
  return `/sessions/${encodeURIComponent(id)}${of ? `/${of}` : ''}`
}
