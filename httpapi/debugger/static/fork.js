// Forking: a new session that begins with a moment of this one, as it was or
// with something changed in it.

import { h } from './dom.js'
import { number, plain } from './format.js'
import { ask } from './dialog.js'
import { parse } from './exact.js'
import { sessionPath } from './api.js'
import { messageCount, sessionsOf, statesOf } from './states.js'

const MOST_CALLS = 50 // that can be chosen, the last ones

// askFork asks how to fork the session at the position, and goes to the fork.
export async function askFork(app) {
  const session = app.session
  const n = app.effectiveAt()
  const then = await statesOf(app).get(session, n)
  const agents = sessionsOf(then)
  const open = agents.some(({ session: s }) => s.turn)
  const name = h('input', { placeholder: 'chosen for you', autocomplete: 'off', spellcheck: 'false', maxlength: 256, 'data-test': 'fork-id' })
  const change = changes(then, agents)
  const run = h('input', { type: 'checkbox', 'data-test': 'fork-run', disabled: !open })
  await ask({
    title: `Fork ${plain(session)} at #${n}?`, label: 'Fork',
    body: [
      h('ul', {},
        h('li', {}, `A new session begins with everything that was so at #${n}: ${number(messageCount(then))} messages, the custom state${agents.length > 1 ? `, ${number(agents.length)} agents` : ''}.`),
        h('li', {}, h('strong', {}, 'Nothing changes in this session.'), ' The fork does not need it later.'),
        open ? h('li', {}, 'A turn was open there: the fork is interrupted. When it continues, calls that have no result yet are executed in the fork, too.')
          : h('li', {}, 'Nothing runs in it until you send a message.'),
        h('li', {}, 'Its usage starts at zero, and it has no checkpoints.')),
      h('label', { class: 'field' }, h('span', {}, 'Id of the fork'), name),
      change.element,
      h('label', { class: 'check' }, run, ' Run on at once')],
    act: async () => {
      const edit = change.read()
      const forked = await app.api.post(sessionPath(session, 'fork'), {
        sequence: n, ...(name.value.trim() ? { sessionId: name.value.trim() } : {}), ...(edit ? { edit } : {}), ...(run.checked ? { run: true } : {}),
      })
      app.emit('sessions')
      app.go({ session: forked.sessionId, at: null, compareTo: null })
    },
  })

  // changes are what the fork may have otherwise. What is edited is sent, the
  // rest is left as it was.
  function changes(root, agents) {
    const users = (root.messages ?? []).map((m, index) => ({ m, index })).filter(({ m }) => m.role === 'user' && !m.metadata?.hidden)
    const last = users.at(-1)
    const message = h('textarea', { rows: 2, value: last?.m.content ?? '', 'data-test': 'fork-message' })
    const was = message.value // in a field each line ends with \n, whatever ended it
    const calls = agents.flatMap(({ session: s }) => callsOf(s)).slice(-MOST_CALLS)
    const result = h('textarea', { class: 'json', rows: 3, spellcheck: 'false', 'data-test': 'fork-result', 'aria-label': 'Its result, as JSON', hidden: true })
    const call = h('select', { 'data-test': 'fork-call', onchange: () => {
      const chosen = calls[call.value]
      result.hidden = !chosen
      result.value = chosen?.result === undefined ? '' : JSON.stringify(chosen.result, null, 2)
    } }, h('option', { value: '' }, 'as it was'), calls.map((c, i) => h('option', { value: i }, `${plain(c.name)} (${plain(c.id)})`)))
    const prompt = h('textarea', { rows: 2, placeholder: 'the agent’s own', 'data-test': 'fork-prompt' })
    const ready = () => { run.disabled = !open && !read() }
    const field = (label, ...inputs) => h('label', { class: 'field' }, h('span', {}, label), ...inputs)
    const element = h('details', { class: 'edits', 'data-test': 'fork-edit', oninput: ready }, h('summary', {}, 'Change something first'),
      h('p', { class: 'muted' }, 'Messages that depend on your change are left out: the fork begins before them.'),
      last && field('The last message of the user', message),
      calls.length ? field('A tool’s result', call, result) : null,
      field('System prompt', prompt))

    function read() {
      const edit = {}
      if (last && message.value !== was) edit.message = { content: message.value, index: last.index }
      if (call.value !== '' && result.value.trim()) edit.toolResult = { toolCallId: calls[call.value].id, text: result.value }
      if (prompt.value) edit.systemPrompt = prompt.value
      return Object.keys(edit).length ? edit : null
    }

    return {
      element,
      read() {
        const edit = read()
        if (edit?.toolResult) {
          try {
            edit.toolResult = { toolCallId: edit.toolResult.toolCallId, result: parse(edit.toolResult.text) }
          } catch (err) {
            throw new Error(`The tool’s result is not JSON: ${err.message}`)
          }
        }
        return edit
      },
    }
  }
}

// callsOf returns a session's tool calls, with what came of them.
function callsOf(s) {
  const results = new Map((s.messages ?? []).filter((m) => m.role === 'tool').map((m) => [m.toolCallId, m.result]))
  return (s.messages ?? []).flatMap((m) => m.parts ?? []).filter((p) => p.toolCall)
    .map(({ toolCall: c }) => ({ id: c.toolCallId, name: c.toolName, result: results.get(c.toolCallId) }))
}
