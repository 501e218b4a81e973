// The conversation of one session as it is in a state: its messages, the text that the
// open step has streamed, annotations, and places where something was truncated.

import { h } from './dom.js'
import { duration, moment, number, plain } from './format.js'
import { link, prose, tree } from './json.js'
import { causeOf, isBad, verdictOf } from './failures.js'
import { sessionPath } from './api.js'

const GROUP = 10 // messages that are laid out together, if they are in sight

// items returns what there is to show, in order: {key, group, build}. Keys differ. What has
// the same key later looks the same, but for what stands open; groups rise.
export function items(app, root, s, outside) {
  const seen = new Set()
  return itemsOf(app, root, s, outside).map((item) => {
    let { key } = item
    while (seen.has(key)) key += ' again'
    seen.add(key)
    return { ...item, key }
  })
}

function itemsOf(app, root, s, outside) {
  if (outside && s === root) return outside.map((m, i) => outsideItem(app, s, m, i))

  const messages = s.messages ?? []
  const out = { list: [], push: (item) => out.list.push({ ...item, group }) }
  const answers = new Map() // of calls, by the assistant's message and the call
  const owner = ownersOf(messages, answers)
  const asides = new Map()
  for (const a of s.asides ?? []) asides.set(a.after, [...asides.get(a.after) ?? [], a])
  const beside = (index) => {
    for (const a of asides.get(index) ?? []) {
      const item = aside(app, root, s, a)
      if (item) out.push(item)
    }
  }
  const truncated = truncatedOf(root, s)
  let turn = 0
  let group = 0
  beside(-1)
  messages.forEach((m, i) => {
    group = Math.floor(i / GROUP)
    while (truncated.length && truncated[0].from < m.sequence) out.push(truncatedItem(app, root, truncated.shift()))
    if (m.turn !== turn && m.role !== 'tool') {
      turn = m.turn
      if (turn > 1) out.push({ key: `turn ${turn}`, build: () => h('div', { class: 'turn' }, `Turn ${turn}`) })
    }
    if (m.role === 'tool' && owner.has(i)) return
    const own = answers.get(i) ?? new Map()
    const calls = callsOf(root, s, i, m, own)
    const where = `${i} ${m.role} ${m.sequence}`
    out.push({
      key: `${where} ${calls.map((c) => `${c.status}${c.answer?.index ?? ''}${c.answer ? causeIn(app, s, c.answer.m) : ''}`).join()}`,
      build: () => (m.role === 'user' ? userMessage(app, s, m, i) : m.role === 'tool' ? answerOf(app, s, { m, index: i }, true) : assistantMessage(app, s, m, i, calls)),
    })
    beside(i)
  })
  for (const g of truncated) out.push(truncatedItem(app, root, g))
  const step = s.turn?.step
  if (step && !step.recorded) out.push(partial(step))
  if (s.error) {
    out.push({ key: `failed ${s.turnCount} ${s.error.code} ${s.error.message.length}`, build: () => h('div', { class: 'ended', role: 'note', 'data-test': 'failed' },
      h('strong', { class: 'bad' }, 'The run failed'), h('span', { class: 'prose' }, plain(s.error.message)), s.error.code && h('code', { class: 'code' }, plain(s.error.code))) })
  }
  return out.list
}

// outsideItem is a message that an outside producer's chunks make.
function outsideItem(app, s, m, i) {
  const group = Math.floor(i / GROUP)
  if (m.most) return { key: 'most', group, build: () => h('p', { class: 'muted pad' }, `These are the first ${number(m.most)} chunks. The records have the rest.`) }
  const calls = m.parts.filter((p) => p.toolCall).map(({ toolCall: c }) => ({ ...c, status: c.answer ? verdictOf(c.answer.m) : 'running' }))
  return {
    key: `outside ${m.sequence} ${JSON.stringify(m.parts).length} ${calls.map((c) => c.status).join()}`, group,
    build: () => h('article', { class: 'message assistant', 'data-test': 'outside', 'data-role': 'assistant', 'data-sequence': m.sequence },
      byline(app, m, h('strong', {}, plain(m.agent === s.sessionId ? s.agentType || 'Assistant' : m.agent)), m.step ? h('span', { class: 'muted' }, `step ${m.step}`) : null, chip('outside producer', 'muted')),
      m.parts.map((p) => [part(app, s, p, calls),
        p.custom && h('div', { class: 'io' }, h('span', { class: 'label' }, 'event'), h('code', {}, plain(p.custom.eventName)), tree(p.custom.data, { open: 0 })),
        p.output !== undefined && h('div', { class: 'io' }, h('span', { class: 'label' }, 'output'), tree(p.output, { open: 1 })),
        p.error !== undefined && h('div', { class: 'io' }, h('span', { class: 'label bad' }, 'error'), prose(p.error, { class: 'prose bad' }))])),
  }
}

// ownersOf finds for each tool message the assistant's message that asked.
function ownersOf(messages, answers) {
  const owner = new Set()
  let last = -1
  messages.forEach((m, i) => {
    if (m.role !== 'tool') {
      last = m.role === 'assistant' ? i : -1
      return
    }
    const asked = messages[last]?.parts?.some((p) => p.toolCall?.toolCallId === m.toolCallId)
    if (!asked) return
    owner.add(i)
    if (!answers.has(last)) answers.set(last, new Map())
    answers.get(last).set(m.toolCallId, { m, index: i })
  })
  return owner
}

// callsOf says how the calls of a message stand.
function callsOf(root, s, index, m, answers) {
  const step = s.turn?.step
  const open = step?.recorded && (step.message ?? 0) === index ? step.calls ?? [] : []
  return (m.parts ?? []).filter((p) => p.toolCall).map(({ toolCall }) => {
    const answer = answers.get(toolCall.toolCallId)
    const call = open.find((c) => c.toolCallId === toolCall.toolCallId)
    const child = Object.values(root.children ?? {}).find((c) => c.child?.callId === toolCall.toolCallId && c.child?.parentSessionId === s.sessionId)
    return { ...toolCall, answer, call, child: child?.sessionId, status: statusOf(answer?.m, call) }
  })
}

function statusOf(answer, call) {
  if (answer) return verdictOf(answer)
  if (!call) return 'unfinished'
  if (call.pending && !call.answer) return { approval: 'pending approval', client: 'pending result', child: 'pending sub-agent' }[call.pending.kind] ?? 'pending'
  if (call.answer?.kind === 'approval-response' && !call.started) return call.answer.approved ? 'approved' : 'denied'
  if (call.answer) return 'answered'
  return call.started ? 'running' : 'not started'
}

const tone = {
  done: 'good', running: 'live', approved: 'good', answered: 'good', unfinished: 'muted', 'not started': 'muted',
}

// chip is a status in a word or a few.
export const chip = (text, kind) => h('span', { class: ['chip', kind ?? (isBad(text) ? 'bad' : tone[text] ?? 'warn')] }, plain(text))

// place is a button that goes to a record.
export function place(app, sequence, label = `#${sequence}`, tabindex) {
  if (!sequence) return null
  return h('button', { type: 'button', class: 'place', tabindex, title: `Go to record ${sequence}`, onclick: () => app.go({ at: sequence }) }, label)
}

function frame(agent, m, index, kind, ...children) {
  return h('article', {
    class: ['message', m.role, kind], 'data-test': 'message', 'data-role': m.role, 'data-index': index, 'data-sequence': m.sequence, 'data-agent': agent,
  }, ...children)
}

const byline = (app, m, ...more) => h('header', {}, ...more, h('span', { class: 'grow' }), h('time', { title: moment(m.timestamp) }, moment(m.timestamp).slice(11)), place(app, m.sequence, undefined, -1))

function userMessage(app, s, m, index) {
  const hidden = m.metadata?.hidden === true
  const body = [
    m.content ? prose(m.content, { class: 'prose' }) : null,
    (m.files ?? []).map((f) => fileOf(f)),
    m.metadata && !hidden ? h('div', { class: 'note' }, tree(m.metadata, { open: 0, name: 'metadata' })) : null,
  ]
  return frame(s.sessionId, m, index, hidden && 'hidden-message',
    byline(app, m, h('strong', {}, hidden ? 'Hidden message' : 'User'), hidden && chip(`for the model only${m.metadata.helix ? `: ${plain(m.metadata.helix)}` : ''}`, 'muted'),
      m.messageId && h('code', { class: 'muted' }, plain(m.messageId))),
    body)
}

function assistantMessage(app, s, m, index, calls) {
  const parts = m.parts?.length ? m.parts : [{ text: m.content }]
  return frame(s.sessionId, m, index, null,
    byline(app, m, h('strong', {}, 'Assistant'), m.step ? h('span', { class: 'muted' }, `step ${m.step}`) : null,
      m.stopReason && !['end_turn', 'tool_use', 'stop'].includes(m.stopReason) && chip(m.stopReason, 'warn')),
    parts.map((p) => part(app, s, p, calls)))
}

function part(app, s, p, calls) {
  return [
    p.reasoning ? reasoning(p.reasoning) : null,
    p.text ? prose(p.text) : null,
    p.toolCall ? callCard(app, s, calls.find((c) => c.toolCallId === p.toolCall.toolCallId)) : null,
    p.source ? sourceOf(p.source) : null,
    p.file ? fileOf(p.file) : null,
  ]
}

function reasoning(text, ...more) {
  return h('details', { class: 'reasoning', open: true }, h('summary', {}, 'Reasoning'), prose(text), ...more)
}

function callCard(app, s, c) {
  const isChild = c.toolName.startsWith('subagent__')
  return h('section', { class: 'call', 'data-test': 'call', 'data-call': c.toolCallId, 'data-status': c.status, 'data-bad': isBad(c.status) },
    h('header', {},
      h('code', { class: 'tool-name' }, plain(isChild ? c.toolName.slice(10) : c.toolName)),
      isChild && h('span', { class: 'muted' }, 'sub-agent'),
      chip(c.status),
      h('span', { class: 'grow' }),
      c.child && h('button', { type: 'button', class: 'quiet', onclick: () => app.look(c.child) }, 'Its conversation'),
      h('code', { class: 'muted id', title: 'the call' }, plain(c.toolCallId))),
    h('div', { class: 'io' }, h('span', { class: 'label' }, 'in'), tree(c.arguments, { open: 1 })),
    c.call?.pending && waits(c.call),
    c.answer && answerOf(app, s, c.answer, false))
}

// waits says what an open call waits for, or has waited for.
function waits({ pending, answer }) {
  const verdict = answer && { 'approval-response': answer.approved ? 'approved' : 'denied', timeout: 'the deadline has passed', abandoned: 'the user continued without it' }[answer.kind]
  return h('div', { class: 'io' }, h('span', { class: 'label' }, 'wait'), answer
    ? h('span', { title: moment(answer.submittedAt) }, `${duration(answer.submittedAt - pending.createdAt)}, then ${verdict ?? 'answered'}`, answer.reason ? [': ', h('q', { class: 'prose' }, plain(answer.reason))] : '')
    : h('span', {}, `since ${moment(pending.createdAt).slice(11)}`, pending.deadline ? `, until ${moment(pending.deadline).slice(11)}` : ''))
}

const causeIn = (app, s, m) => (m.error ? causeOf(app, s.sessionId, m) : '')

function answerOf(app, s, { m, index }, alone) {
  const cause = causeIn(app, s, m)
  return frame(s.sessionId, m, index, m.error ? 'failed-call' : null,
    alone ? byline(app, m, h('strong', {}, 'Tool'), h('code', {}, plain(m.toolName))) : null,
    m.denial && h('div', { class: 'io' }, h('span', { class: 'label bad' }, 'denied'), prose(m.denial.reason || 'without a reason')),
    m.error && h('div', { class: 'io' }, h('span', { class: 'label bad' }, 'error'),
      h('div', {}, m.errorCode && h('code', { class: 'code' }, plain(m.errorCode)), prose(m.error, { class: 'prose bad' }))),
    cause && h('div', { class: 'io', 'data-test': 'cause' }, h('span', { class: 'label' }, 'cause'), prose(cause)),
    m.result !== undefined && !(m.error && m.result === null) && h('div', { class: 'io' }, h('span', { class: 'label' }, 'out'), tree(m.result, { open: 1 })),
    !alone && place(app, m.sequence))
}

function sourceOf(source) {
  return h('div', { class: 'source' }, 'Source: ', source.url ? link(source.url, source.title || source.url) : plain(source.title ?? source.filename ?? source.sourceId),
    source.url && source.title ? h('span', { class: 'muted' }, ' ', plain(source.url)) : null)
}

const pictures = /^data:image\/(png|jpeg|gif|webp);base64,/

function fileOf(f) {
  const data = f.data ?? f.url ?? ''
  return h('figure', {},
    pictures.test(data) && data.length < 4e6 ? h('img', { src: data, alt: plain(f.filename ?? 'a picture'), loading: 'lazy' }) : null,
    h('figcaption', {}, plain(f.filename ?? 'file'), ' ', h('span', { class: 'muted' }, plain(f.mediaType), data.startsWith('data:') ? `, ${number(Math.round(data.length * 0.75))} bytes` : ''),
      data.startsWith('data:') ? null : [' ', link(data)]))
}

// partial is the text that an open step has streamed, which is not a message yet.
function partial(step) {
  const parts = step.partial ?? []
  const said = parts.map((p) => `${p.kind}${p.text?.length}${p.closed}`).join()
  return {
    key: `partial ${step.id} ${step.attempts} ${said}`,
    build() {
      const body = parts.map((p, i) => {
        const caret = !p.closed && i === parts.length - 1 ? h('span', { class: 'caret', 'aria-hidden': 'true' }) : null
        switch (p.kind) {
          case 'reasoning': return reasoning(p.text, caret)
          case 'tool_call': return h('section', { class: 'call', 'data-test': 'call', 'data-call': p.callId, 'data-status': 'asking' },
            h('header', {}, h('code', { class: 'tool-name' }, plain(p.toolName)), chip(p.closed ? 'asked for' : 'being written', 'live')),
            h('pre', { class: 'arguments' }, plain(p.text), caret))
          case 'source': return p.source && sourceOf(p.source)
          case 'file': return p.file && fileOf(p.file)
          default: return h('div', { class: 'prose' }, plain(p.text), caret)
        }
      })
      return h('article', { class: 'message assistant partial', 'data-test': 'partial', 'data-role': 'assistant' },
        h('header', {}, h('strong', {}, 'Assistant'), h('span', { class: 'muted' }, `step ${step.number}`), chip(parts.length ? 'is speaking' : 'has been asked', 'live')),
        step.failure && h('div', { class: 'io' }, h('span', { class: 'label bad' }, 'failed'),
          h('div', {}, `Attempt ${step.attempts}: `, h('code', { class: 'code' }, plain(step.failure.code)), ' ', plain(step.failure.error), step.failure.retryable ? ' It will be tried again.' : '')),
        body,
        parts.length ? null : h('span', { class: 'caret', 'aria-hidden': 'true' }))
    },
  }
}

// aside shows an annotation: content of a message that is not of the model's answer.
function aside(app, root, s, a) {
  const key = `aside ${a.sequence} ${a.type ?? ''} ${a.callId ?? ''}`
  const row = (...children) => ({ key, build: () => h('div', { class: 'aside', 'data-test': 'aside' }, ...children, h('span', { class: 'grow' }), place(app, a.sequence)) })
  const c = a.chunk ?? {}
  switch (a.type) {
    case 'custom': return row(h('span', { class: 'label' }, 'event'), h('code', {}, plain(c.eventName)), tree(c.data, { open: 0 }))
    case 'output': return row(h('span', { class: 'label' }, 'output'), tree(c.output, { open: 1 }))
    case 'run_interrupted': return row(h('span', { class: 'label' }, 'interrupted'), plain(c.reason ?? ''))
    case 'subagent_start':
    case 'subagent_end': return null // the call shows it
  }
  if (a.partial) {
    return {
      key, build: () => h('article', { class: 'message assistant lost', 'data-test': 'partial' },
        h('header', {}, h('strong', {}, 'Assistant'), chip('not finished: the run failed', 'bad'), h('span', { class: 'grow' }), place(app, a.sequence)),
        a.partial.map((p) => (p.kind === 'reasoning' ? reasoning(p.text) : prose(p.kind === 'tool_call' ? `${p.toolName} ${p.text}` : p.text)))),
    }
  }
  if (a.session) {
    return row(h('span', { class: 'label' }, 'asks'), h('button', { type: 'button', class: 'quiet', onclick: () => app.look(a.session) }, plain(a.session)), h('code', { class: 'muted' }, plain(a.callId)))
  }
  return null
}

// truncatedOf returns the ranges of a session that truncation has truncated, those
// that are in one place as one.
function truncatedOf(root, s) {
  const ranges = (root.dead ?? []).filter((g) => g.agentId === s.sessionId).sort((a, b) => a.from - b.from)
  const out = []
  for (const g of ranges) {
    const last = out.at(-1)
    if (last && g.from <= last.to) {
      last.to = Math.max(last.to, g.to)
      last.ranges.push(g)
    } else {
      out.push({ from: g.from, to: g.to, agent: s.sessionId, ranges: [g] })
    }
  }
  return out
}

function truncatedItem(app, root, g) {
  return {
    key: `truncated ${g.from} ${g.to} ${g.ranges.length}`,
    build() {
      const body = h('div', { class: 'body' })
      const box = h('details', {},
        h('summary', {}, h('span', { class: 'label' }, 'truncated'), g.ranges.some((r) => r.scope === 'all') ? 'by a rollback' : 'unfinished, generated again'), body)
      let asked = false
      box.addEventListener('toggle', () => {
        if (!box.open || asked) return
        asked = true
        body.textContent = 'Reading…'
        readStruck(app, root.sessionId, g).then((what) => body.replaceChildren(...what), (err) => {
          asked = false
          body.replaceChildren(h('p', { class: 'bad' }, plain(err.message)))
        })
      })
      return h('div', { class: 'truncated', 'data-test': 'truncated', 'data-from': g.from, 'data-to': g.to }, box, h('span', { class: 'where' }, place(app, g.from), ' – ', place(app, g.to)))
    },
  }
}

const mostTruncated = 5000 // records that are read to show what was truncated

const contents = {
  text_delta: (d) => ['text', d.delta], thinking: (d) => (d.isComplete ? null : ['reasoning', d.content]),
  tool_arg_stream_start: (d) => ['call', `${d.toolName} `, d.toolCallId], tool_arg_stream_delta: (d) => ['call', d.delta, d.toolCallId],
  user_message: (d) => ['user', d.content, d.timestamp],
  tool_result: (d) => ['result', `${d.toolName}: ${d.error ?? JSON.stringify(d.result)}${d.cause ? `: ${d.cause}` : ''}`, d.toolCallId],
}

// readStruck folds the records of a range into what there was to read.
async function readStruck(app, session, g) {
  const blocks = []
  let count = 0
  let whole = false
  const params = { from: Math.max(0, g.from - 1), to: g.to, dead: 1, limit: mostTruncated }
  await app.api.ndjson(sessionPath(session, 'records'), params, (r) => {
    if (!truncates(g.ranges, r)) return
    count++
    const [kind, said, of] = Object.hasOwn(contents, r.type) ? contents[r.type](r.data) ?? [] : []
    const last = whole ? undefined : blocks.at(-1)
    whole = !kind && !r.call // a record of another kind ends the text
    if (!kind) return
    if (last && last.kind === kind && last.of === of) last.text += said
    else blocks.push({ kind, of, text: said, sequence: r.sequence })
  })
  return [
    ...blocks.map((b) => h('div', { class: 'io' }, h('span', { class: 'label' }, b.kind), h('s', {}, prose(b.text)), place(app, b.sequence))),
    h('p', { class: 'muted' }, `${number(count)} records${count ? '' : ': nothing that can be read'}. They are still in the log.`),
  ]
}

const life = new Set(['run_interrupted', 'run_resumed', 'run_paused', 'executor_superseded', 'checkpoint_created', 'step_committed', 'step_discarded',
  'stream_resync', 'suspension_marker', 'error'])
const ofStream = new Set(['stream_paused', 'stream_resumed', 'stream_end', 'stream_failed'])
const mortal = new Set(['user_message', 'message_added', 'run_requested', 'model_turn', 'model_failed', 'tool_result', 'run_ended', 'stream_paused',
  'stream_resumed', 'stream_end', 'stream_failed', 'call_suspended', 'result_submitted', 'interrupt_requested', 'remote_progress',
  'memory_recalled', 'workspace_saved', 'workspace_restored'])

// truncates reports whether one of the ranges truncates a record, as package
// eventlog has it.
export function truncates(ranges, r) {
  return ranges.some((g) => {
    if (g.agentId !== r.agent || r.sequence < g.from || r.sequence > g.to) return false
    if (g.scope === 'all') return r.kind === 'chunk' || mortal.has(r.type)
    if (g.scope === 'stream') return r.kind === 'chunk' || ofStream.has(r.type)
    if ((g.callId ?? '') !== (r.call ?? '') || r.kind !== 'chunk') return false
    if (g.scope === 'chunks') return true
    return !life.has(r.type) && (g.scope === 'content' || Boolean(r.run))
  })
}

