// What can be done to the session. It is done to the session as it is now,
// whichever moment is looked at, but for a fork and a rollback, which are about
// that moment.

import { h, put, setText } from './dom.js'
import { moment as timeOf, number, plain } from './format.js'
import { chip } from './conversation.js'
import { ask, failure } from './dialog.js'
import { compareForm } from './compare.js'
import { diff, tree } from './json.js'
import { parse } from './exact.js'
import { sessionPath } from './api.js'
import { askFork } from './fork.js'
import { Latest, messageCount, statesOf, statusOf, tones } from './states.js'

const RESULT = 'The result, as JSON: { }'

export function mount(element, app) {
  const states = statesOf(app)
  let now = null // the session's summary
  const cards = new Map() // of waiting calls, by id: what is typed in them stays

  const status = h('span', { 'data-test': 'run-status' })
  const pastWords = h('span', {})
  const toHead = h('button', { type: 'button', class: 'quiet', onclick: () => app.go({ at: null }) })
  const past = h('p', { class: 'past', hidden: true }, pastWords, toHead)
  const waiting = h('div', { class: 'cards' })
  const said = h('div', { 'aria-live': 'polite' })
  const button = (name, label, act, props) => h('button', { type: 'button', 'data-test': name, onclick: act, ...props }, label)
  const interrupt = button('interrupt', 'Interrupt', () => run(interrupt, stopRun('/interrupt')), { title: 'Stop the run for now; it can be resumed' })
  const resume = button('resume', 'Resume', () => run(resume, goOn), { title: 'Go on where the run stopped' })
  const abort = button('abort', 'Abort…', () => askAbort(), { class: 'danger', title: 'Stop the run for good' })
  const fork = button('fork', 'Fork…', () => run(fork, () => askFork(app)), { title: 'A new session that begins with this moment (f)' })
  const rollback = button('rollback', 'Roll back…', () => run(rollback, askRollback), { class: 'danger', title: 'Take the session back to this moment' })
  const compare = h('div', {})
  const head = h('header', { class: 'head', tabindex: -1 }, h('h2', {}, 'Session'), status)
  put(element, head, past, waiting,
    h('div', { class: 'buttons' }, interrupt, resume, abort, fork, rollback), said, compare)
  compareForm(compare, app)

  const latest = new Latest(app, async (session, last, dropped) => {
    try {
      const got = await app.api.get(sessionPath(session))
      if (dropped()) return
      now = got
    } catch {
      if (dropped()) return // the page's bar says what is wrong
    }
    show()
  })
  const look = () => app.session !== null && latest.ask(app.session)

  function show() {
    const over = !now || now.status === 'completed' || now.status === 'failed'
    const running = Boolean(now) && !over && (now.isExecuting || now.currentRun?.status === 'running')
    put(status, now ? chip(statusOf(now), tones[statusOf(now)]) : h('span', { class: 'muted' }, 'Loading…'))
    interrupt.disabled = !running
    abort.disabled = over || !now?.currentRun
    resume.disabled = over || running || !now?.currentRun
    showPlace()
    const open = now?.pendingToolCalls ?? []
    document.body.toggleAttribute('data-pending', open.length > 0)
    for (const [id, card] of cards) {
      if (!open.some((c) => c.toolCallId === id)) {
        if (card.contains(document.activeElement)) head.focus() // the focus must not get lost with it
        card.remove()
        cards.delete(id)
      }
    }
    for (const call of open) {
      if (!cards.has(call.toolCallId)) cards.set(call.toolCallId, cardOf(call))
      const card = cards.get(call.toolCallId)
      if (card.parentNode !== waiting) waiting.append(card)
    }
  }

  function showPlace() {
    const n = app.effectiveAt()
    const before = app.at !== null && app.head > 0 && app.at < app.head
    fork.disabled = !n || !now
    rollback.disabled = !before || !n || !now
    fork.textContent = n ? `Fork at #${n}…` : 'Fork…'
    rollback.textContent = before && n ? `Roll back to #${n}…` : 'Roll back…'
    past.hidden = !before
    if (!before) return
    setText(pastWords, `You look at #${n}. Actions are on the session as it is now, #${app.head}; only fork and rollback are about #${n}. `)
    setText(toHead, `Go to #${app.head}`)
  }

  // run has something done by a button, once at a time, and says what went wrong.
  async function run(by, act) {
    if (by.hasAttribute('aria-busy')) return
    by.setAttribute('aria-busy', 'true')
    const session = app.session
    put(said)
    try {
      await act()
    } catch (err) {
      if (app.session === session) put(said, failure(err))
    }
    by.removeAttribute('aria-busy')
    after()
  }

  function after() {
    look()
    app.refresh()
  }

  const stopRun = (path) => () => app.api.post(path, { sessionId: app.session })

  const goOn = (session = app.session) => app.api.post('/resume', { sessionId: session })

  function askAbort() {
    const session = app.session
    const reason = h('input', { autofocus: true, maxlength: 500, 'data-test': 'reason' })
    return ask({
      title: `Abort the run of ${plain(session)}?`, label: 'Abort', danger: true,
      body: [h('p', {}, 'The run fails for good, and its sub-agents with it. It can’t be resumed; its records stay in the log. A fork from an earlier point can continue.'),
        h('label', { class: 'field' }, h('span', {}, 'Reason, if you like'), reason)],
      act: () => app.api.post('/abort', { sessionId: session, ...(reason.value ? { reason: reason.value } : {}) }),
    }).then(after)
  }

  // submit answers a call; when no call is open any more, the run continues.
  async function submit(session, call, answer) {
    const told = await app.api.post('/submit-tool-result', { sessionId: session, toolCallId: call.toolCallId, ...answer })
    const tell = (what) => app.session === session && put(said, what)
    if (told.status !== 'accepted') {
      tell(h('p', { class: 'muted', role: 'status' }, `Your answer came too late: ${plain(told.status)}.`))
    } else if (!told.pendingToolCallIds?.length) {
      await goOn(session).catch((err) => tell(failure(err))) // the answer itself is stored: it is not given again
    }
    return told
  }

  function cardOf(call) {
    const session = app.session
    const trouble = h('div', { 'aria-live': 'assertive' })
    const act = async (answer, ...buttons) => {
      buttons.forEach((b) => { b.disabled = true })
      put(trouble)
      try {
        await submit(session, call, answer)
      } catch (err) {
        put(trouble, failure(err))
        buttons.forEach((b) => { b.disabled = false })
      }
      after()
    }
    return h('article', { class: 'pending', 'data-test': 'pending-call', 'data-call': call.toolCallId, 'data-kind': call.kind },
      h('header', {}, h('code', { class: 'tool-name' }, plain(call.toolName)), chip(call.kind === 'approval' ? 'needs your approval' : 'needs a result', 'warn')),
      h('p', { class: 'muted' }, `since ${timeOf(call.createdAt)}`, call.deadline ? `, until ${timeOf(call.deadline)}` : '',
        call.ownerSessionId !== session ? ` · asked by ${plain(call.ownerSessionId)}` : ''),
      h('div', { class: 'input', tabindex: 0, role: 'group', 'aria-label': 'Arguments' }, tree(call.input, { open: 2 })),
      call.kind === 'approval' ? approval(session, call, act) : clientTool(call, act),
      trouble)
  }

  function approval(session, call, act) {
    const base = { kind: 'approval-response', ...(call.approvalId ? { approvalId: call.approvalId } : {}) }
    const approve = h('button', { type: 'button', class: 'primary', 'data-test': 'approve', onclick: () => act({ ...base, approved: true }, approve, deny) }, 'Approve')
    const deny = h('button', { type: 'button', class: 'danger', 'data-test': 'deny', onclick: () => {
      const reason = h('textarea', { rows: 3, autofocus: true, maxlength: 4000, 'data-test': 'reason' })
      ask({
        title: `Deny ${plain(call.toolName)}?`, label: 'Deny', danger: true,
        body: [h('p', {}, 'The tool does not run. The model receives the denial with your reason, and continues.'), h('label', { class: 'field' }, h('span', {}, 'Reason, for the model'), reason)],
        act: () => submit(session, call, { ...base, approved: false, ...(reason.value.trim() ? { reason: reason.value.trim() } : {}) }),
      }).then(after)
    } }, 'Deny…')
    return h('div', { class: 'buttons' }, approve, deny)
  }

  function clientTool(call, act) {
    const failed = h('input', { type: 'checkbox' })
    const input = h('textarea', { class: 'json', rows: 4, spellcheck: 'false', 'data-test': 'answer-input', 'aria-label': 'The tool’s result as JSON', placeholder: RESULT })
    const problem = h('p', { class: 'problem', role: 'status' })
    const answer = h('button', { type: 'button', class: 'primary', 'data-test': 'answer', disabled: true, onclick: () => {
      const value = read()
      if (value === undefined) return
      act(failed.checked ? { kind: 'client-tool-result', error: value } : { kind: 'client-tool-result', result: value }, answer)
    } }, 'Answer')
    const read = () => {
      if (failed.checked) return input.value.trim() || undefined
      try {
        return parse(input.value)
      } catch {
        return undefined
      }
    }
    const check = () => {
      input.placeholder = failed.checked ? 'What went wrong' : RESULT
      let wrong = ''
      if (!failed.checked && input.value.trim()) {
        try {
          parse(input.value)
        } catch (err) {
          wrong = `Not JSON yet: ${err.message}`
        }
      }
      problem.textContent = plain(wrong)
      input.setAttribute('aria-invalid', String(Boolean(wrong)))
      answer.disabled = read() === undefined
    }
    input.addEventListener('input', check)
    failed.addEventListener('change', check)
    return h('div', { class: 'answer' }, input, problem, h('div', { class: 'buttons' }, answer, h('label', { class: 'muted check' }, failed, ' it failed')))
  }

  async function askRollback() {
    const session = app.session
    const n = app.effectiveAt()
    const head = app.head
    const [then, today] = await Promise.all([states.get(session, n), states.get(session, head)])
    const changes = diff(then.customState, today.customState).length
    const marks = (app.timeline?.marks ?? []).filter((m) => m.kind === 'checkpoint' && !m.struck && m.sequence > n).length
    const lost = messageCount(today) - messageCount(then)
    await ask({
      title: `Roll ${plain(session)} back to #${n}?`, label: `Roll back to #${n}`, danger: true,
      body: [h('ul', {},
        h('li', {}, `The records after #${n}, up to #${head}, are truncated. They stay in the log and can be read, but no longer count.`),
        h('li', {}, lost > 0 ? `${number(lost)} of ${number(messageCount(today))} messages ${lost === 1 ? 'goes' : 'go'}` : 'No message goes', marks ? `, and ${number(marks)} ${marks === 1 ? 'checkpoint' : 'checkpoints'}.` : '.'),
        h('li', {}, changes ? `The custom state is again what it was: ${number(changes)} ${changes === 1 ? 'value differs' : 'values differ'}.` : 'The custom state is the same there.'),
        now?.isExecuting ? h('li', {}, h('strong', {}, 'The run that is under way is stopped.')) : null,
        then.turn ? h('li', {}, 'A turn was open there: the session is interrupted, and continues when you resume it.') : null,
        h('li', {}, 'What tools have done outside, and what was paid, is not undone. To keep this session as it is, fork instead.'))],
      act: async () => {
        await app.api.post(sessionPath(session, 'rollback'), { sequence: n })
        if (app.session === session) app.go({ at: null })
      },
    })
  }

  let seen = 0
  app.on('session', () => {
    now = null
    seen = 0
    put(said)
    for (const card of cards.values()) card.remove()
    cards.clear()
    show()
    look()
  })
  app.on('at', showPlace)
  app.on('timeline', () => {
    showPlace()
    if (app.head !== seen) look()
    seen = app.head
  })
  app.on('live', () => app.connection.state === 'live' && look())
  show()
  look()
}
