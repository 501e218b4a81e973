// What sessions hold, as text and as trees, and what differs between two values.
//
// All of it may have been written by a model or by a stranger. It goes into the
// document as text, with the characters shown that are not seen.

import { h } from './dom.js'
import { Exact } from './exact.js'
import { line, number, plain } from './format.js'

// longest is how much of a text is shown before it is asked for, in characters.
const longest = 4000

// prose returns a text of any length: a long one shows its beginning, and the
// rest when asked.
export function prose(text, props = {}) {
  text = String(text)
  if (text.length <= longest) return h('div', { class: 'prose', ...props }, plain(text))
  const box = h('div', { class: 'prose', ...props }, plain(text.slice(0, longest)), '… ')
  box.append(h('button', {
    type: 'button', class: 'quiet more', onclick: () => box.replaceChildren(plain(text)),
  }, `all ${number(text.length)} characters`))
  return box
}

// marked marks what lies between the front and the end that two texts share.
export function marked(text, other) {
  if (text === other) return prose(text)
  let front = 0
  while (front < text.length && text[front] === other[front]) front++
  let end = 0
  while (end < text.length - front && end < other.length - front && text.at(-1 - end) === other.at(-1 - end)) end++
  if (front + end < text.length / 4 || text.length > 8000) return prose(text)
  return h('div', { class: 'prose' }, plain(text.slice(0, front)), h('mark', {}, plain(text.slice(front, text.length - end))), plain(text.slice(text.length - end)))
}

// link returns a link to an address of the web, and plain text for any other.
export function link(address, label = address) {
  let url
  try {
    url = new URL(String(address))
  } catch {
    return h('span', {}, plain(label))
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return h('span', {}, plain(label))
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, plain(label))
}

// brief is the JSON of a value in one line, cut to a length.
export function brief(value, limit = 120) {
  const text = value === undefined ? '' : JSON.stringify(value)
  return text.length > limit ? text.slice(0, limit) + '…' : text
}

const isContainer = (v) => v !== null && typeof v === 'object' && !(v instanceof Exact)
const has = (o, k) => Object.prototype.hasOwnProperty.call(o, k)

// pointer is a path as RFC 6901 writes it.
export const pointer = (path) => path.map((p) => '/' + String(p).replaceAll('~', '~0').replaceAll('/', '~1')).join('')

// diff returns what leads from one value to another: {path, op, before, after}.
// Of arrays what is equal at the front and at the end is left out.
export function diff(before, after, path = [], out = []) {
  if (before === after) return out
  if (!isContainer(before) || !isContainer(after) || Array.isArray(before) !== Array.isArray(after)) {
    if (!same(before, after)) out.push({ path, op: 'replace', before, after })
    return out
  }
  if (Array.isArray(after)) {
    let from = 0
    while (from < before.length && from < after.length && same(before[from], after[from])) from++
    let tail = 0
    while (tail < before.length - from && tail < after.length - from && same(before.at(-1 - tail), after.at(-1 - tail))) tail++
    const olds = before.length - tail
    const news = after.length - tail
    for (let i = from; i < Math.max(olds, news); i++) {
      if (i >= news) out.push({ path: [...path, i], op: 'remove', before: before[i] })
      else if (i >= olds) out.push({ path: [...path, i], op: 'add', after: after[i] })
      else diff(before[i], after[i], [...path, i], out)
    }
    return out
  }
  for (const k of Object.keys(before)) {
    if (!has(after, k)) out.push({ path: [...path, k], op: 'remove', before: before[k] })
    else diff(before[k], after[k], [...path, k], out)
  }
  for (const k of Object.keys(after)) {
    if (!has(before, k)) out.push({ path: [...path, k], op: 'add', after: after[k] })
  }
  return out
}

// same reports whether two values are equal, whatever the order of members.
export function same(a, b) {
  if (a === b) return true
  if (!isContainer(a) || !isContainer(b)) return !isContainer(a) && !isContainer(b) && JSON.stringify(a) === JSON.stringify(b)
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((k) => has(b, k) && same(a[k], b[k]))
}

// page is how many members of a value a tree shows before it is asked.
const page = 100

// tree returns a value as a tree that can be opened. changes are those of diff:
// they are marked, and what holds them is open. open is how deep it is open
// otherwise.
export function tree(value, { changes = [], open = 2, name } = {}) {
  const marks = { changed: new Map(), within: new Set(), gone: new Map() }
  for (const c of changes) {
    for (let i = 0; i < c.path.length; i++) marks.within.add(pointer(c.path.slice(0, i)))
    if (c.op !== 'remove') {
      marks.changed.set(pointer(c.path), c)
      continue
    }
    const from = pointer(c.path.slice(0, -1))
    marks.gone.set(from, [...marks.gone.get(from) ?? [], c])
  }
  return h('div', { class: 'tree' }, node(name, value, [], open, marks))
}

const changed = (c) => c && { 'data-test': 'state-change', 'data-path': pointer(c.path), 'data-op': c.op }
const key = (name) => (name === undefined ? null : h('span', { class: 'key' }, plain(name), ': '))

function node(name, value, path, open, marks) {
  const at = pointer(path)
  const change = marks.changed.get(at)
  const props = { class: ['node', change?.op], ...changed(change) }
  const label = [key(name), change?.op === 'replace' && [h('del', {}, leaf(change.before)), ' ']]
  const gone = marks.gone.get(at) ?? []
  if (!isContainer(value) || (Object.keys(value).length === 0 && !gone.length)) return h('div', props, label, leaf(value))
  const keys = Object.keys(value)
  const list = Array.isArray(value)
  const short = !gone.length && !marks.within.has(at) && inline(value, keys)
  if (short) return h('div', props, label, short)
  const box = h('details', props, h('summary', {}, label, h('span', { class: 'brief' }, outline(value, keys))))
  let built = false
  const build = () => {
    if (built) return
    built = true
    const members = h('div', { class: 'members' })
    let shown = 0
    const more = () => {
      const upTo = Math.min(keys.length, shown + page)
      for (; shown < upTo; shown++) {
        members.append(node(keys[shown], value[keys[shown]], [...path, list ? shown : keys[shown]], open - 1, marks))
      }
      if (shown === keys.length) return
      const rest = h('button', { type: 'button', class: 'quiet more', onclick: () => { rest.remove(); more() } }, `${number(keys.length - shown)} more`)
      members.append(rest)
    }
    more()
    for (const c of gone) {
      members.append(h('div', { class: 'node remove', ...changed(c) }, key(c.path.at(-1)), h('del', {}, leaf(c.before))))
    }
    box.append(members)
  }
  box.addEventListener('toggle', () => box.open && build())
  if (open > 0 || marks.within.has(at)) {
    build()
    box.open = true
  }
  return box
}

const narrow = 64 // what takes no more characters is in one line

// inline returns a value in one line, if it is short and holds no others.
function inline(value, keys) {
  if (keys.length > 8 || keys.some((k) => isContainer(value[k]) && Object.keys(value[k]).length)) return null
  if (JSON.stringify(value).length > narrow) return null
  if (keys.some((k) => typeof value[k] === 'string' && /["\n]/.test(value[k]))) return null // it could look like more members
  const [l, r] = Array.isArray(value) ? '[]' : '{}'
  return [l, keys.map((k, i) => [i ? ', ' : '', Array.isArray(value) ? null : key(k), leaf(value[k])]), r]
}

// outline says what a value holds while its members are not shown.
function outline(value, keys) {
  if (Array.isArray(value)) return `[${number(keys.length)}]`
  const names = keys.slice(0, 4).map((k) => line(k, 24)).join(', ')
  return `{${names}${keys.length > 4 ? ', …' : ''}}`
}

// leaf shows a value in one place; a container by its JSON.
function leaf(value) {
  if (value === undefined) return h('span', { class: 'null' }, 'nothing')
  if (value === null) return h('span', { class: 'null' }, 'null')
  if (typeof value === 'string') return long('string', `"${value}"`) // as it is written: nothing in it is escaped
  if (isContainer(value)) return long('brief', JSON.stringify(value))
  return h('span', { class: typeof value }, String(value))
}

function long(kind, text, limit = 500) {
  if (text.length <= limit) return h('span', { class: kind }, plain(text))
  const box = h('span', { class: kind }, plain(text.slice(0, limit)), '… ')
  box.append(h('button', {
    type: 'button', class: 'quiet more', onclick: (e) => {
      e.preventDefault()
      box.replaceChildren(plain(text))
    },
  }, `all ${number(text.length)}`))
  return box
}
