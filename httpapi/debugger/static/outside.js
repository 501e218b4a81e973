// The conversation of a session without runs: its chunks, which an outside producer has
// appended, read as messages.

import { sessionPath } from './api.js'
import { truncates } from './conversation.js'

const MOST = 5000 // chunks that are read

const all = new WeakMap() // by app

// outsideOf returns the messages of such a session at a record, or null for any other. If only the
// first chunks are read, the last message has how many, and nothing else.
export async function outsideOf(app, session, n, root) {
  if (!root.head || root.messages?.length || root.runs?.length || root.turn) return null
  let known = all.get(app)
  const startedAt = root.createdAt
  if (known?.session !== session || known.startedAt !== startedAt) all.set(app, known = { session, startedAt, to: 0, chunks: [] })
  if (n > known.to && known.chunks.length < MOST) {
    const found = []
    await app.api.ndjson(sessionPath(session, 'records'), { kind: 'chunk', dead: 1, from: known.to || undefined, to: n, limit: MOST - known.chunks.length }, (r) => found.push(r))
    if (n > known.to) { // another request may have been quicker
      known.chunks.push(...found.filter((r) => r.sequence > known.to))
      known.to = n
    }
  }
  const messages = fold(known.chunks.filter((r) => r.sequence <= n && !truncates(root.dead ?? [], r)))
  if (known.chunks.length >= MOST && n > known.chunks.at(-1).sequence) messages.push({ most: MOST })
  return messages
}

// fold makes messages of chunks: those of an agent's step are one.
function fold(chunks) {
  const messages = []
  const calls = new Map()
  const reasons = new Set() // agents of whose reasoning pieces have come: the whole only ends them
  for (const { sequence, type, data: d, agent } of chunks) {
    const last = messages.at(-1)
    const message = () => {
      if (last && last.agent === agent && last.step === d.step) return last
      messages.push({ role: 'assistant', agent, step: d.step, sequence, timestamp: d.timestamp, parts: [] })
      return messages.at(-1)
    }
    const add = (kind, text) => {
      const { parts } = message()
      if (parts.at(-1)?.[kind] !== undefined) parts.at(-1)[kind] += text
      else parts.push({ [kind]: text })
    }
    switch (type) {
      case 'text_delta': add('text', d.delta); break
      case 'thinking':
        if (!d.isComplete) reasons.add(agent)
        else if (reasons.delete(agent)) break
        add('reasoning', d.content)
        break
      case 'tool_start': {
        const toolCall = { toolCallId: d.toolCallId, toolName: d.toolName, arguments: d.arguments, status: 'running' }
        calls.set(d.toolCallId, toolCall)
        message().parts.push({ toolCall })
        break
      }
      case 'tool_end': {
        const call = calls.get(d.toolCallId)
        const m = { role: 'tool', sequence, timestamp: d.timestamp, toolCallId: d.toolCallId, toolName: d.toolName, result: d.result, error: d.error, errorCode: d.errorCode }
        if (call) call.answer = { m }
        else message().parts.push({ toolCall: { toolCallId: d.toolCallId, toolName: d.toolName, answer: { m } } })
        break
      }
      case 'custom': message().parts.push({ custom: d }); break
      case 'output': message().parts.push({ output: d.output }); break
      case 'error': message().parts.push({ error: d.error }); break
    }
  }
  return messages
}
