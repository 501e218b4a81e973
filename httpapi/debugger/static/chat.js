// Talking to an agent: a first message begins a session, a further one continues
// with the session that is shown, as it is now.

import { h, put, setText } from './dom.js'
import { plain } from './format.js'
import { failure } from './dialog.js'
import { sessionPath } from './api.js'

export function mount(element, app) {
  let sending = false
  let messageID = newID('msg') // the same until it was taken: a message that is sent again counts once
  let lost = null // {session, agentType, message, after}: what was sent and had no answer may have been taken
  const title = h('h2', {})
  const agent = h('select', { 'data-test': 'chat-agent', 'aria-label': 'Agent', onchange: () => show() })
  const id = h('input', { 'data-test': 'chat-session', 'aria-label': 'Id of the new session', placeholder: 'Session id, or nothing: one is chosen', autocomplete: 'off', spellcheck: 'false', maxlength: 256 })
  const input = h('textarea', { rows: 3, 'data-test': 'chat-input', 'aria-label': 'Message', onkeydown: (e) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return
    e.preventDefault()
    send()
  } })
  const button = h('button', { type: 'submit', class: 'primary', 'data-test': 'chat-send' }, 'Send')
  const hint = h('p', { class: 'muted hint' })
  const trouble = h('div', { 'aria-live': 'assertive' })
  const teach = h('div', { class: 'teach muted' })
  put(element, h('form', { class: 'chat', onsubmit: (e) => {
    e.preventDefault()
    send()
  } }, h('header', { class: 'head' }, title, agent), id, input, h('div', { class: 'foot' }, hint, h('span', { class: 'grow' }), button), trouble, teach))

  let agents = [], known = false
  async function load() {
    try {
      agents = (await app.api.get('/readyz')).agents ?? []
      known = true
    } catch { /* then a session that is shown can be talked to */ }
    fill()
  }

  function fill() {
    const was = agent.value
    put(agent, app.session === null ? null : h('option', { value: '' }, 'this session'), agents.map((a) => h('option', { value: a }, app.session === null ? plain(a) : `new session: ${plain(a)}`)))
    if ([...agent.options].some((o) => o.value === was)) agent.value = was
    show()
  }

  function show() {
    const fresh = agent.value !== ''
    id.hidden = !fresh
    setText(title, app.session === null ? 'Start a session' : 'Chat')
    input.placeholder = fresh ? `The first message to ${plain(agent.value)}` : 'Say something to this session'
    const waits = app.timeline?.status === 'active' && app.timeline.streamStatus === 'paused'
    setText(hint, [
      !fresh && app.at !== null && app.at < app.head ? `It goes to the session as it is now, not as it was at #${app.at}.` : '',
      !fresh && waits ? 'The session is paused: a message continues it without the pending results.' : '',
    ].filter(Boolean).join(' '))
    button.disabled = sending || (app.session === null && !fresh)
    teach.hidden = app.session !== null
    if (teach.hidden) return
    put(teach, known && !agents.length
      ? ['This server has no agents yet. Add some to its ', h('code', {}, 'helix.yaml'), ', or append the chunks of your own agent with ', h('code', {}, 'POST /sessions/{id}/chunks'), '.']
      : ['Or from a shell:', h('pre', { tabindex: 0 }, `curl ${new URL('start', document.baseURI)} -d '${JSON.stringify({ sessionId: 'my-session', agentType: agent.value || 'my-agent', message: 'Hello' }).replaceAll("'", '')}'`)])
  }

  async function send() {
    const text = input.value
    if (sending || !text.trim() || button.disabled) return
    sending = true
    button.disabled = true
    put(trouble)
    const from = app.session
    try {
      const session = agent.value === '' ? await speak(from, text) : await begin(agent.value, text)
      if (input.value === text) input.value = ''
      messageID = newID('msg')
      lost = null
      app.emit('sessions')
      if (app.session === from) { // otherwise the user has gone elsewhere meanwhile
        id.value = ''
        agent.value = ''
        app.go({ session, at: null, compareTo: null })
        app.refresh()
      }
    } catch (err) {
      if (app.session === from) put(trouble, failure(err))
    }
    sending = false
    show()
    input.focus()
  }

  async function begin(agentType, message) {
    const typed = id.value.trim()
    const again = lost?.agentType === agentType && lost.message === message && (!typed || lost.session === typed)
    if (again && await taken(lost)) return lost.session
    const sessionId = again ? lost.session : typed || newID(agentType.replace(/[^\w-]/g, '').slice(0, 40) || 'chat')
    await attempt({ session: sessionId, agentType, message, after: 0 }, () => app.api.post('/start', { sessionId, agentType, message }))
    return sessionId
  }

  // attempt sends a message. Where no answer comes, it remembers which: sent
  // once more, it is looked for first.
  async function attempt(what, send) {
    try {
      return await send()
    } catch (err) {
      if (err.status === 0 || err.status >= 500) lost = what
      throw err
    }
  }

  // taken says whether a message has arrived all the same.
  async function taken({ session, message, after }) {
    try {
      const { state } = await app.api.get(sessionPath(session, 'state'))
      return (state.messages ?? []).some((m) => m.role === 'user' && m.content === message && m.sequence > after)
    } catch (err) {
      if (err.status === 404) return false
      throw err
    }
  }

  // speak continues with a session. A turn that waits or was interrupted is
  // resumed; where none is open, a further one begins, which is what the chat's
  // route does: its answer is the stream, which the page has already.
  async function speak(session, message) {
    const again = lost?.session === session && lost.agentType === '' && lost.message === message
    if (again && await taken(lost)) return session
    const now = await app.api.get(sessionPath(session))
    const what = { session, agentType: '', message, after: again ? lost.after : now.headSequence }
    const over = now.status === 'completed' || now.status === 'failed' || !now.currentRun
    if (!over) {
      await attempt(what, () => app.api.post('/resume', { sessionId: session, message }))
      return session
    }
    const answer = await attempt(what, () => app.api.raw('POST', '/chat', {
      accept: 'text/event-stream',
      body: { id: session, messages: [{ id: messageID, role: 'user', parts: [{ type: 'text', text: message }] }] },
    }))
    answer.body?.cancel()
    return session
  }

  app.on('session', () => {
    put(trouble)
    agent.value = ''
    fill()
  })
  app.on('at', show)
  app.on('timeline', show)
  load()
}

const newID = (name) => `${name}-${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`
