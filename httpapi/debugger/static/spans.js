// What blocks are called.

import { line } from './format.js'

const kinds = {
  run: 'run', step: 'step', user: 'message', reasoning: 'reasoning', text: 'answer', tool: 'tool', approval: 'approval', client_tool: 'client tool',
  child: 'sub-agent', suspended: 'suspended', custom: 'event', outside: 'outside',
}

const waits = { client_tool: 'waits for a person', suspended_client_tool: 'waits for a person', children: 'waits for sub-agents', suspended_children: 'waits for sub-agents' }

// nameOf is what is in a block.
export function nameOf(span) {
  if (span.kind === 'step') return `step ${span.step || ''}`.trim()
  if (span.kind === 'run') return span.turn ? `turn ${span.turn}` : 'run'
  if (span.kind === 'suspended') return waits[span.label] ?? line(span.label || 'suspended', 80)
  return line(span.label || kinds[span.kind] || span.kind, 80)
}

// describe says what a block is and how it went.
export function describe(span) {
  const kind = kinds[span.kind] ?? span.kind
  const label = line(span.label, 80)
  const isArguments = span.kind === 'text' && span.callId // a model writes them as it writes text
  let words = isArguments ? label || 'arguments' : span.kind === 'suspended' || span.kind === 'step' || span.kind === 'run' ? nameOf(span) : label && label !== kind ? `${kind} ${label}` : kind
  if (span.status && span.status !== 'done') words += `, ${span.status}`
  if (span.struck) words += ', taken back'
  return words
}
