// Questions before something is done, and answers when it did not work.

import { h, put } from './dom.js'
import { plain } from './format.js'

const hints = {
  ALREADY_RUNNING: 'The session is busy. Interrupt it, or wait until it stops.',
  ALREADY_COMPLETED: 'The session’s run is finished. Send a message for a further turn, or fork it.',
  SESSION_EXISTS: 'Choose another id.',
  NOT_FOUND: '',
  UNAUTHORIZED: 'Your token does not allow it.',
  CURSOR_AHEAD: 'The session has no such record yet.',
  TRUNCATED: 'Retention has removed the records up to there.',
  READ_ONLY: 'The log takes no writes now, such as when the disk is full. Look at /readyz.',
  UNAVAILABLE: 'Try again in a moment.',
  UNREACHABLE: 'Is the daemon running? The page continues when it is back.',
  INTERRUPT_DEADLINE_EXCEEDED: 'The run stops as soon as it can.',
}

// failure shows an error so that one can do something about it.
export function failure(err) {
  return h('p', { class: 'failure', role: 'alert', 'data-test': 'error' },
    h('span', {}, plain(err?.message || String(err))),
    err?.code ? [' ', h('code', {}, plain(err.code))] : null,
    hints[err?.code] ? h('span', { class: 'hint' }, hints[err.code]) : null,
    err?.detail?.field ? h('span', { class: 'hint' }, 'It is about ', h('code', {}, plain(err.detail.field)), '.') : null)
}

// ask opens a dialog and resolves to what act returned, or to undefined when it
// was cancelled. What act throws is shown in the dialog, which stays open.
// Closed, it gives the focus back to where it was.
export function ask({ title, body, label, danger = false, act }) {
  return new Promise((resolve) => {
    const from = document.activeElement
    const trouble = h('div', { 'aria-live': 'assertive' })
    const confirm = h('button', { type: 'submit', class: danger ? 'danger' : 'primary', 'data-test': 'confirm' }, label)
    const cancel = h('button', { type: 'button', 'data-test': 'cancel', onclick: () => dialog.close() }, 'Cancel')
    let result
    let acting = false
    // What is under way is not undone by closing its dialog, which says what came of it.
    const stay = (event) => {
      if (acting && (event.type === 'cancel' || event.key === 'Escape')) event.preventDefault()
    }
    const busy = (yes) => { acting = confirm.disabled = cancel.disabled = yes }
    const heading = h('h2', { id: `ask-${++asked}`, tabindex: -1 }, title)
    const dialog = h('dialog', { class: 'ask', 'aria-labelledby': heading.id, oncancel: stay, onkeydown: stay, onclose: () => {
      dialog.remove()
      if (from?.isConnected) from.focus()
      resolve(result)
    } }, h('form', { method: 'dialog', onsubmit: async (event) => {
      event.preventDefault()
      if (acting) return
      busy(true)
      heading.focus() // a disabled button hears no keys
      put(trouble)
      try {
        result = (await act()) ?? true
        dialog.close()
      } catch (err) {
        put(trouble, failure(err))
        busy(false)
        confirm.focus()
      }
    } }, heading, h('div', { class: 'body' }, body), trouble, h('footer', {}, cancel, confirm)))
    document.body.append(dialog)
    dialog.showModal()
    const first = dialog.querySelector('[autofocus]') ?? (danger ? cancel : confirm)
    first.focus()
  })
}

let asked = 0
