// People's labels of the sessions of a cohort: whether what was recorded is good. They are the
// custom state of a session of the log.

import { sessionPath } from './api.js'
import { failure } from './dialog.js'
import { h, put } from './dom.js'
import { plain } from './format.js'
import { pointer } from './json.js'
import { labelsOf } from './labs.js'

const words = new Map([[true, 'good'], [false, 'bad']])

// createLabels returns the labels of a cohort, by its hash.
export function createLabels(app, hash) {
  const id = labelsOf(hash)
  const known = new Map() // by session
  const waiting = new Map() // what is being written, by session
  const failed = new Map()
  const controls = new Map() // sets of elements, by session

  const labels = {
    get: (session) => (waiting.has(session) ? waiting.get(session) : known.get(session)),

    async load(signal) {
      try {
        const { state } = await app.api.get(sessionPath(id, 'state'), {}, signal)
        known.clear()
        for (const [session, label] of Object.entries(state.customState ?? {})) if (words.has(label)) known.set(session, label)
      } catch (err) {
        if (err.status !== 404) throw err // nobody has labelled a session
      }
      for (const session of controls.keys()) show(session)
    },

    // set labels a session: true, false, or undefined for no label.
    async set(session, label) {
      if (waiting.has(session)) return
      waiting.set(session, label)
      failed.delete(session)
      show(session)
      try {
        await write(session, label)
        if (label === undefined) known.delete(session)
        else known.set(session, label)
      } catch (err) {
        failed.set(session, err)
      }
      waiting.delete(session)
      show(session)
    },

    // toggle gives a label, or takes it away.
    toggle: (session, label) => labels.set(session, labels.get(session) === label ? undefined : label),

    // control returns buttons that show and change the label of a session.
    control(session) {
      const element = h('span', { class: 'lab-label', role: 'group', 'aria-label': `Label of ${plain(session)}`, 'data-test': 'lab-label', 'data-session': session })
      const buttons = [...words].map(([label, word]) => h('button', {
        type: 'button', 'data-test': `lab-${word}`, 'data-word': word, title: `What was recorded is ${word}`, onclick: () => labels.toggle(session, label),
      }, word))
      const trouble = h('span', {})
      put(element, buttons, trouble)
      element.show = () => {
        const now = labels.get(session)
        element.dataset.label = words.get(now) ?? ''
        element.toggleAttribute('data-writing', waiting.has(session))
        for (const [i, [label]] of [...words].entries()) buttons[i].setAttribute('aria-pressed', String(now === label))
        put(trouble, failed.has(session) ? failure(failed.get(session)) : null)
      }
      element.show()
      if (!controls.has(session)) controls.set(session, new Set())
      controls.get(session).add(element)
      return element
    },
  }

  function show(session) {
    for (const element of controls.get(session) ?? []) {
      element.show()
    }
  }

  // write appends the change. The key lets it be sent again if the answer got lost.
  async function write(session, label) {
    const path = pointer([session])
    const patches = [{ op: 'add', path, value: label ?? null }]
    if (label === undefined) patches.push({ op: 'remove', path }) // after the other: somebody else may have removed it
    const body = [{ type: 'state_patch', patches, agentId: id, agentType: 'lab-labels', timestamp: Date.now(), step: 0 }]
    const headers = { 'Idempotency-Key': [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('') }
    try {
      await app.api.post(sessionPath(id, 'chunks'), body, { headers })
    } catch (err) {
      if (err.status !== 0) throw err
      await app.api.post(sessionPath(id, 'chunks'), body, { headers })
    }
  }
  return labels
}
