// What blocks are called.

import { line } from './format.js'

const kinds = {
  run: 'run', step: 'step', user: 'message', reasoning: 'reasoning', text: 'answer', tool: 'tool', approval: 'approval', client_tool: 'client tool',
  child: 'sub-agent', suspended: 'suspended', custom: 'event', outside: 'outside',
}

// nameOf is what stands in a block.
export function nameOf(span) {
  if (span.kind === 'step') return `step ${span.step || ''}`.trim()
  if (span.kind === 'run') return span.turn ? `turn ${span.turn}` : 'run'
  return line(span.label || kinds[span.kind] || span.kind, 80)
}

// describe tells what a block is and how it went.
export function describe(span) {
  const kind = kinds[span.kind] ?? span.kind
  const label = line(span.label, 80)
  const isArguments = span.kind === 'text' && span.callId // a model writes them as it writes text
  let words = isArguments ? label || 'arguments' : span.kind === 'step' || span.kind === 'run' ? nameOf(span) : label && label !== kind ? `${kind} ${label}` : kind
  if (span.status && span.status !== 'done') words += `, ${span.status}`
  if (span.struck) words += ', taken back'
  return words
}
