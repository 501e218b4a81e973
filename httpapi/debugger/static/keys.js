// The keyboard, wherever the focus is but in a field or a dialog.

import { h, put } from './dom.js'
import { failuresOf } from './failures.js'
import { createPlaces } from './places.js'

const help = [
  ['← →', 'one record back or on'],
  ['shift ← →', 'one step back or on'],
  ['j k', 'next or previous block or mark'],
  ['e E', 'next or previous failure or refused call'],
  ['Home End', 'to the beginning, to the end'],
  ['space', 'follow the session live, or stay here'],
  ['+ − 0', 'zoom in, zoom out, show all'],
  ['t', 'timeline by record or by time'],
  ['c', 'compare'],
  ['f', 'fork here'],
  ['/', 'search; Esc leaves a field'],
  ['↑ ↓ Esc', 'in a lab: to a session, back to the sessions'],
  ['n p d', 'in a lab: next, previous session, first difference'],
  ['g b', 'in a lab: label a session good, bad'],
  ['?', 'this help'],
]

// bindKeys begins to listen. timeline is what zooms. It returns how to go a
// record, a step or a thing of note back or on.
export function bindKeys(app, timeline) {
  const places = createPlaces(app)
  let wanted = [] // moves that wait for the one under way
  let moving = false

  async function move(kind, direction) {
    if (wanted.length > 20) return // a held key is faster than a server can be
    wanted.push([kind, direction])
    if (moving) return
    moving = true
    try {
      while (wanted.length) {
        const [kind, direction] = wanted.shift()
        if (app.session === null) continue
        const session = app.session
        const to = await places[kind](app.effectiveAt(), direction)
        if (app.session === session) app.scrub(to)
      }
    } catch (err) {
      console.warn(err) // the connection's state has more detail
      wanted = []
    }
    moving = false
  }

  const press = (test) => {
    const button = [...document.querySelectorAll(`[data-test="${test}"]`)].find((b) => !b.disabled && b.offsetParent !== null)
    button?.focus()
    button?.click()
  }

  const keys = {
    ArrowLeft: (e) => move(e.shiftKey ? 'step' : 'record', -1),
    ArrowRight: (e) => move(e.shiftKey ? 'step' : 'record', 1),
    j: () => move('note', 1),
    k: () => move('note', -1),
    e: () => failuresOf(app).go(1),
    E: () => failuresOf(app).go(-1),
    Home: () => app.scrub(0),
    End: () => app.scrub(app.head),
    ' ': () => app.go({ at: app.at === null ? app.head : null }),
    '+': () => timeline().zoom(0.6),
    '=': () => timeline().zoom(0.6),
    '-': () => timeline().zoom(1 / 0.6),
    0: () => timeline().fit(),
    t: () => timeline().toggleAxis(),
    c: () => press('compare-open'),
    f: () => press('fork'),
    '/': () => {
      if (matchMedia('(max-width: 760px)').matches && !document.body.hasAttribute('data-drawer')) document.getElementById('drawer').click()
      document.querySelector('[data-test="search"]')?.focus()
    },
    '?': () => showHelp(),
  }

  // Escape leaves a field, so that the keys work.
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && !event.isComposing && event.target.matches?.('input, textarea, select') && !event.target.closest('dialog, #signin')) event.target.blur()
  })
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.querySelector('dialog[open]')) return // wherever the focus has gone
    const target = event.target instanceof Element ? event.target : null
    if (target?.closest('input, textarea, select, [contenteditable], dialog, #signin, [role="tree"], [role="tablist"], [role="listbox"]')) return
    if (event.key === ' ' && target?.closest('button, summary, [role="button"]')) return
    const does = keys[event.key]
    if (!does || ((app.session === null || document.body.hasAttribute('data-lab')) && event.key !== '/' && event.key !== '?')) return
    event.preventDefault()
    does(event)
  })
  document.getElementById('help').addEventListener('click', showHelp)
  return move
}

function showHelp() {
  if (document.querySelector('dialog.help')) return
  const dialog = h('dialog', { class: 'help', 'aria-label': 'Keyboard', onclose: () => dialog.remove(), onclick: (e) => { if (e.target === dialog) dialog.close() } })
  put(dialog, h('div', { class: 'help-body' },
    h('h2', {}, 'Keyboard'),
    h('dl', {}, help.map(([keys, what]) => [
      h('dt', {}, keys.split(' ').map((k) => h('kbd', {}, k))), h('dd', {}, what),
    ])),
    h('button', { type: 'button', onclick: () => dialog.close(), autofocus: true }, 'Close')))
  document.body.append(dialog)
  dialog.showModal()
}
