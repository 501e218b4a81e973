// What people say of recorded sessions: good, bad or nothing. It is the custom state of a session of
// its own, so that all pages and the lab itself read it.

import { sessionPath } from './api.js'
import { h } from './dom.js'
import { plain } from './format.js'

const DIGITS = 12 // of the cohort's hash

// createLabels returns the labels of a cohort; changed is called when they are others.
export function createLabels(app, changed) {
  let id = '', said = {}, trouble = new Map()

  async function load() {
    const mine = id
    try {
      const got = (await app.api.get(sessionPath(mine, 'state'))).state.customState ?? {}
      if (mine === id) said = got
    } catch (err) {
      if (err.status !== 404 && mine === id) trouble.set('', err)
    }
    if (mine === id) changed()
  }

  async function set(session, value) {
    const mine = id
    const had = Object.hasOwn(said, session)
    if (value === null && !had) return
    const path = '/' + session.replaceAll('~', '~0').replaceAll('/', '~1')
    const patch = value === null ? { op: 'remove', path } : { op: 'add', path, value }
    const key = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, '0')).join('')
    try {
      await app.api.post(sessionPath(mine, 'chunks'), [{ type: 'state_patch', agentId: mine, agentType: 'lab-labels', timestamp: Date.now(), step: 0, patches: [patch] }], { headers: { 'Idempotency-Key': key } })
      trouble.delete(session)
    } catch (err) {
      trouble.set(session, err)
    }
    await load()
  }

  return {
    of(hash) {
      const next = `lab-labels-${String(hash).slice(0, DIGITS)}`
      if (next !== id) said = {}
      id = next
      trouble.clear()
      load()
    },
    all: () => [said, [...trouble].map(([s, err]) => [s, err.message])],
    control(session) {
      const now = Object.hasOwn(said, session) ? said[session] : null
      const button = (value, label) => h('button', {
        type: 'button', class: 'quiet', 'aria-pressed': String(now === value), 'data-test': `label-${label}`,
        title: now === value ? `Take back “${label}”` : `The recorded session is ${label}`, onclick: () => set(session, now === value ? null : value),
      }, label)
      const err = trouble.get(session) ?? trouble.get('')
      return h('span', { class: 'lab-label' }, button(true, 'good'), button(false, 'bad'), err ? h('span', { class: 'bad', role: 'alert', title: plain(err.message) }, ' not kept') : null)
    },
  }
}
