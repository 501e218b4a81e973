// One decision of a lane.

import { h } from './dom.js'
import { line, plain } from './format.js'
import { brief, diff, marked, prose, tree } from './json.js'
import { changedParts } from './labrows.js'

const container = (v) => v !== null && typeof v === 'object'

// decisionOf shows a decision. other is the one of the lane that it is compared with, if they
// differ; texts: of it, only texts are marked. compact: another lane shows the same, so the value is folded.
export function decisionOf(d, { other, texts, compact, moment, lane }) {
  const element = h('article', { class: 'lab-decision', 'data-test': 'lab-decision', 'data-lane': lane, 'data-kind': d.kind },
    h('header', {}, h('span', { class: 'lab-lane' }, lane), h('strong', {}, plain(d.kind)), d.name ? h('code', { class: 'tool-name' }, line(d.name, 120)) : null,
      d.agent ? h('span', { class: 'muted lab-agent', title: `Agent ${plain(d.agent)}` }, line(d.agent, 80)) : null, h('span', { class: 'grow' }), moment))
  if (d.kind === 'model-request') {
    const changed = changedParts(d, other)
    if (changed.length) element.append(h('p', { class: 'lab-changed' }, 'changed: ', changed.map((k, i) => [i ? ', ' : '', h('mark', {}, plain(k))])))
    return element
  }
  if (d.content === undefined || d.content === null) return element
  if (!compact) {
    element.append(h('div', { class: 'lab-content' }, contentOf(d, other, texts)))
    return element
  }
  const folded = h('details', {}, h('summary', {}, gist(d.content)))
  folded.addEventListener('toggle', () => folded.childElementCount === 1 && folded.append(h('div', { class: 'lab-content' }, contentOf(d))))
  element.append(folded)
  return element
}

// gist is a decision's content in a line.
function gist(content) {
  if (typeof content === 'string') return line(content, 160)
  if (Array.isArray(content)) {
    const said = content.map((p) => p?.text ?? p?.reasoning ?? (p?.call ? `${p.call} ${brief(p.arguments)}` : null)).filter(Boolean)
    if (said.length) return line(said.join(' · '), 160)
  }
  return line(brief(content, 400), 160)
}

function contentOf(d, other, texts) {
  if (d.kind === 'model-answer' && Array.isArray(d.content)) return d.content.map((p, i) => partOf(p, other?.content?.[i], texts))
  return valueOf(d.content, other?.kind === d.kind ? other.content : undefined, texts)
}

// partOf is a part of a model's answer.
function partOf(p, other, texts) {
  if (typeof p?.text === 'string' && p.text) return valueOf(p.text, other?.text)
  if (typeof p?.reasoning === 'string' && p.reasoning) return h('div', { class: 'reasoning' }, prose(p.reasoning))
  if (p?.call !== undefined) return h('div', { class: 'call' }, h('code', { class: 'tool-name' }, plain(p.call)), valueOf(p.arguments, other?.call === p.call ? other.arguments : undefined, texts))
  return tree(p, { open: 1 })
}

function valueOf(value, other, texts) {
  if (typeof value === 'string') return typeof other === 'string' ? marked(value, other) : prose(value)
  return tree(value, { open: 2, changes: !texts && container(value) && container(other) ? diff(other, value) : [] })
}
