// Why a session failed, in the first view, and the way to each failure and refused call.

import { h, icon, put, setText } from './dom.js'
import { failuresOf } from './failures.js'
import { number, plain } from './format.js'

export function mount(element, app) {
  const failures = failuresOf(app)
  const button = (test, label, act, ...children) => h('button', { type: 'button', class: 'quiet', 'data-test': test, 'aria-label': label, title: label, onclick: act }, ...children)
  const what = h('strong', { class: 'bad' })
  const why = h('span', { class: 'prose', 'data-test': 'why' })
  const cause = h('span', { class: 'muted prose', 'data-test': 'why-cause' })
  const code = h('code', { class: 'code' })
  const first = h('button', { type: 'button', 'data-test': 'why-first', onclick: () => failures.show(failures.list[0]) })
  const place = h('span', { class: 'muted', 'data-test': 'why-place' })
  const steps = h('span', { class: 'why-steps' },
    button('why-previous', 'Previous failure (shift e)', () => failures.go(-1), icon('back')), place,
    button('why-next', 'Next failure (e)', () => failures.go(1), icon('next')))
  put(element, h('p', { class: 'why-text', 'aria-live': 'polite' }, what, ' ', why, ' ', cause, ' ', code), h('div', { class: 'why-ways' }, first, steps))

  function show() {
    const { list } = failures
    const failed = app.timeline?.status === 'failed'
    element.hidden = !failed && list.length === 0
    if (element.hidden) return
    const at = failures.index()
    const shown = list[at] ?? (failed ? { what: 'Failed', why: failures.error?.message ?? list.at(-1)?.why ?? 'Loading the reason…', code: failures.error?.code }
      : { what: '', why: list.length === 1 ? 'One call failed or was refused.' : `${number(list.length)} failures and refused calls.` })
    setText(what, shown.what && `${shown.what}${shown.why ? ':' : ''}`)
    setText(why, plain(shown.why))
    setText(cause, plain(shown.cause ?? ''))
    setText(code, plain(shown.code ?? ''))
    code.hidden = !shown.code
    const [begin] = list
    first.hidden = !begin
    if (begin) setText(first, `First: ${plain(begin.what)} #${begin.sequence}`)
    steps.hidden = list.length < 2
    setText(place, at < 0 ? number(list.length) : `${number(at + 1)} of ${number(list.length)}`)
  }
  for (const event of ['failures', 'timeline', 'session', 'at']) app.on(event, show)
  show()
}
