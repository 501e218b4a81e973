// What the colours and the marks of the timeline mean. It has those that the session
// has; each kind of blocks can be hidden.

import { h, put } from './dom.js'

// Kinds of blocks, in their order, with the class that colours them.
const blocks = [
  ['user', 'message'], ['reasoning', 'reasoning'], ['text', 'answer'], ['arguments', 'arguments of a call'], ['tool', 'tool'], ['approval', 'approval'],
  ['client_tool', 'client tool'], ['child', 'sub-agent'], ['suspended', 'paused or interrupted'], ['custom', 'event'], ['outside', 'outside producer'],
]

const marks = {
  claimed: 'claimed by a node', takeover: 'takeover: its node died', checkpoint: 'checkpoint', paused: 'paused', resumed: 'resumed', interrupt: 'interrupt',
  abort: 'abort', error: 'error', truncated: 'truncated', rollback: 'rollback', discarded: 'discarded step', forked: 'fork', recalled: 'memories recalled',
  parked: 'parked record', ended: 'end',
}

// kindOf is the kind that a block is coloured and hidden by.
export const kindOf = (span) => (span.kind === 'text' && span.callId ? 'arguments' : span.kind)

// createLegend fills an element. hidden is the set of kinds that are not shown; changed
// is called when it is another one.
export function createLegend(element, hidden, changed) {
  let known = ''
  return function show(t) {
    const kinds = new Set(), seen = new Set()
    let failed = false, truncated = false
    for (const s of t?.spans ?? []) {
      kinds.add(kindOf(s))
      failed ||= s.status === 'failed' || s.status === 'denied'
      truncated ||= Boolean(s.struck)
    }
    for (const m of t?.marks ?? []) seen.add(m.kind)
    const now = JSON.stringify([[...kinds], [...seen], failed, truncated])
    if (now === known) return
    known = now
    const swatch = (...names) => h('span', { class: ['lg-block', ...names], 'aria-hidden': 'true' })
    put(element,
      blocks.filter(([kind]) => kinds.has(kind)).map(([kind, name]) => h('button', {
        type: 'button', class: 'quiet', 'data-test': 'legend-kind', 'data-kind': kind, 'aria-pressed': String(!hidden.has(kind)), title: `Show or hide: ${name}`, onclick: (event) => {
          hidden.has(kind) ? hidden.delete(kind) : hidden.add(kind)
          event.currentTarget.setAttribute('aria-pressed', String(!hidden.has(kind)))
          changed()
        },
      }, swatch('sp', `k-${kind}`), name)),
      failed && h('span', {}, swatch('sp', 's-failed'), 'failed or refused'),
      truncated && h('span', {}, h('span', { class: 'lg-block sp k-text', 'data-truncated': true, 'aria-hidden': 'true' }), 'truncated'),
      Object.entries(marks).filter(([kind]) => seen.has(kind)).map(([kind, name]) => h('span', {}, h('span', { class: `mk m-${kind}`, 'aria-hidden': 'true' }), name)))
  }
}
