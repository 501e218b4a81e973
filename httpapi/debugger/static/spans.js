// What blocks are called.

import { line } from './format.js'

const kinds = {
  run: 'run', step: 'step', user: 'message', reasoning: 'reasoning', text: 'answer', tool: 'tool', approval: 'approval', client_tool: 'client tool',
  child: 'sub-agent', suspended: 'paused', custom: 'event', outside: 'outside producer',
}

// Why a run is paused.
const pauses = { client_tool: 'paused', awaiting_children: 'paused for sub-agents', step_partial: 'paused' }

// again are the modes of a run that continues a turn.
const again = new Set(['continue', 'with_message', 'with_confirmation', 'from_checkpoint', 'retry'])

// nameOf is what is in a block.
export function nameOf(span) {
  if (span.kind === 'step') return `step ${span.step || ''}`.trim()
  if (span.kind === 'run') return span.turn ? `turn ${span.turn}${again.has(span.label) ? ', continued' : ''}` : 'run'
  if (span.kind === 'outside') return kinds.outside
  if (span.kind === 'suspended') return pauses[span.label] ?? line(span.label || 'paused', 80)
  return line(span.label || kinds[span.kind] || span.kind, 80)
}

// describe says what a block is and how it went.
export function describe(span, verdict = span.status) {
  const kind = kinds[span.kind] ?? span.kind
  const label = line(span.label, 80)
  const isArguments = span.kind === 'text' && span.callId // a model writes them as it writes text
  let words = isArguments ? label || 'arguments' : span.kind === 'suspended' || span.kind === 'step' || span.kind === 'run' ? nameOf(span) : label && label !== kind ? `${kind} ${label}` : kind
  if (verdict && verdict !== 'done') words += `, ${verdict === 'waiting' ? 'pending' : verdict}`
  if (span.struck) words += ', truncated'
  return words
}
