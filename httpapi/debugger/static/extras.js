// What else there is of a session, as it is now: its files, its memories, what it has
// used, and who has asked for what. Each section asks when it is opened.

import { h, put, setText } from './dom.js'
import { failure } from './dialog.js'
import { moment as timeOf, money, number, plain } from './format.js'
import { chip, place } from './conversation.js'
import { sessionPath } from './api.js'
import { sessionsOf, statesOf } from './states.js'

const MOST = 200 // entries of a section

// Facts that record a request, and so who made it.
const requests = ['session_created', 'session_imported', 'session_forked', 'user_message', 'message_added', 'metadata_replaced', 'run_deleted', 'run_requested', 'interrupt_requested', 'result_submitted', 'truncated', 'stream_end', 'stream_failed']

// actor is who asked for what a record says, in a line.
export const actor = (by) => by && [by.token ?? by.subject, by.user && `for ${by.user}`, by.address && `from ${by.address}`, by.requestId && `request ${by.requestId}`].filter(Boolean).join(', ')

const none = (...words) => h('p', { class: 'muted' }, ...words)
const fact = (name, ...value) => h('div', { class: 'about' }, h('span', { class: 'muted' }, name), h('span', {}, ...value))

const sections = {
  files: ['Files', async (app, session) => {
    const { workspace: w } = await app.api.get('/workspace', { sessionId: session })
    const root = await statesOf(app).get(session, app.head)
    const files = w && await app.api.get(sessionPath(session, 'files'), { limit: MOST }).catch((err) => { if (err.status >= 500) return { problem: err }; throw err })
    const touched = sessionsOf(root).flatMap(({ session: s }) => s.messages ?? []).flatMap((m) => (m.parts ?? []).filter((p) => p.toolCall?.toolName.startsWith('workspace_')).map((p) => ({ m, call: p.toolCall })))
    return [
      w ? [fact('workspace', h('code', {}, plain(w.name)), ' ', chip(w.status, { open: 'good', failed: 'bad' }[w.status] ?? 'muted')), fact('kind', plain(w.providerId)), fact('allows', (w.capabilities ?? []).map(plain).join(', ')),
        w.lastUsedAt && fact('last used', timeOf(w.lastUsedAt)), w.error && fact('error', h('span', { class: 'bad' }, plain(w.error)))] : none('The agent has no workspace.'),
      files?.problem && failure(files.problem),
      files?.items?.length > 0 && h('table', { class: 'usage files', 'aria-label': 'Files in the workspace' }, h('tbody', {}, files.items.map((f) => h('tr', {}, h('th', { scope: 'row' }, h('code', {}, plain(f.path + (f.folder ? '/' : '')))),
        h('td', {}, f.folder ? '' : `${number(f.size)} bytes`), h('td', {}, f.modified ? timeOf(f.modified) : ''))))),
      files?.items?.length === 0 && none('There is no file in it.'),
      (files?.hasMore || files?.truncated) && none(`These are the first ${number(files.items.length)}. The rest: helixd files ${plain(session)}`),
      touched.length > 0 && none('Calls that used files, the last one first:'),
      touched.slice(-MOST).reverse().map(({ m, call: c }) => h('div', { class: 'io' }, place(app, m.sequence), h('span', { class: 'muted' }, plain(c.toolName.slice(10).replaceAll('_', ' '))), h('code', {}, plain(c.arguments?.path ?? c.arguments?.from ?? c.arguments?.command ?? '')))),
    ]
  }],
  memories: ['Memories', async (app, session) => {
    const { userId } = await app.api.get(sessionPath(session))
    const read = (scope, id) => app.api.get('/memories', { scope, id, limit: MOST }).then((got) => got.items, (err) => { if (err.status === 403) return []; throw err })
    const all = [...await read('session', session), ...(userId ? await read('user', userId) : [])]
    return all.length ? all.map((m) => h('div', { class: 'io' }, chip(m.scope?.kind ?? '', 'muted'), h('span', { class: 'prose' }, plain(m.content)), h('time', { class: 'muted' }, timeOf(m.createdAt).slice(0, 10))))
      : none(userId ? `Nothing is saved of this session or the user ${plain(userId)}.` : 'Nothing is saved of this session.')
  }],
  models: ['Models, tools and budget', async (app, session) => {
    const { rollup: r, budget: b } = await app.api.get(sessionPath(session, 'usage'), { limit: 1 })
    const table = (heads, rows) => rows.length > 0 && h('table', { class: 'usage' }, h('thead', {}, h('tr', {}, h('td', {}), heads.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, rows.map(([name, ...cells]) => h('tr', {}, h('th', { scope: 'row' }, plain(name)), cells.map((c) => h('td', {}, c))))))
    const spent = Object.entries(r.models ?? {}).map(([name, m]) => [name, number(m.calls), number(m.tokens.total)])
    const called = Object.entries(r.tools ?? {}).map(([name, t]) => [name, number(t.totalCalls), number(t.failedCalls)])
    const left = (name, used, most, text) => most > 0 && h('div', { class: 'budget' }, fact(name, `${text(used)} of ${text(most)} used today`),
      h('meter', { min: 0, max: most, high: most * 0.9, value: used, 'aria-label': name }))
    return [
      spent.length || called.length ? [table(['calls', 'tokens'], spent), table(['calls', 'failed'], called)] : none('No model and no tool was called.'),
      b ? [left('the tenant’s tokens', b.tokens, b.tokensPerDay, number), left('the tenant’s cost', b.usd, b.usdPerDay, money)] : none('No budget limits this session.'),
    ]
  }],
  audit: ['Audit trail', async (app, session) => {
    const found = []
    await app.api.ndjson(sessionPath(session, 'records'), { kind: 'fact', type: requests, dead: 1 }, (r) => found.push(r))
    return found.length ? found.slice(-MOST).reverse().map((r) => h('div', { class: 'io' }, place(app, r.sequence), h('code', {}, plain(r.type)),
      h('span', {}, actor(r.data.by) ? plain(actor(r.data.by)) : 'by helixd, or not known'), h('span', { class: 'grow' }), h('time', { class: 'muted' }, timeOf(Date.parse(r.origin?.time ?? r.time)))))
      : none('Nobody has asked for anything.')
  }],
}

// extras returns these sections, closed, for the session that is shown.
export function extras(app) {
  const element = h('div', { class: 'extras' })
  const begin = () => put(element, app.session === null ? null : Object.entries(sections).map(([name, [title, load]]) => {
    const asOf = h('span', { class: 'muted now-note' }, 'now')
    const body = h('div', { class: 'entries', tabindex: 0, role: 'group', 'aria-label': title })
    return h('details', { class: 'section', 'data-section': name, 'data-test': `section-${name}`, ontoggle: async (event) => {
      if (!event.target.open) return
      const { session } = app
      put(body, none('Loading…'))
      setText(asOf, '')
      const got = await load(app, session).catch((err) => failure(err))
      if (app.session !== session) return
      put(body, got)
      setText(asOf, `as of ${timeOf(Date.now()).slice(11, 19)}`)
    } }, h('summary', {}, title, asOf), body)
  }))
  for (const event of ['session', 'reset']) app.on(event, begin)
  begin()
  return element
}
