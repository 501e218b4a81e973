// Puts the page together.

import { UNREACHABLE_NAME } from './api.js'
import { createApp } from './app.js'
import { h, icon, put } from './dom.js'

const THEME = 'helixd-theme'
const themes = ['auto', 'light', 'dark']

// What goes where. A part that fails leaves the others as they are.
const parts = ['list', 'lab', 'why', 'timeline', 'moment', 'actions', 'compare', 'records', 'chat']
const places = { list: 'sessions' }

const reasons = {
  gone: 'There is no such session, or it has been erased. If one begins by this name, it appears here.',
  refused: 'You may not look at this session.',
}

const byID = (id) => document.getElementById(id)

const app = createApp(askForToken)

for (const part of parts) {
  const element = byID(places[part] ?? part)
  import(`./${part}.js`).then((m) => m.mount(element, app)).catch((err) => {
    console.error(err)
    put(element, h('p', { class: 'failed', 'data-test': 'error' }, `This part of the page does not work: ${err.message}`))
  })
}

function mountBar() {
  const connection = byID('connection')
  let told = '' // the trouble that is shown: its button keeps the focus while it is the same
  const show = () => {
    const { state, error } = app.connection
    connection.dataset.state = state
    const words = { idle: '', loading: 'Loading', live: '', retrying: 'Reconnecting', gone: 'No such session', refused: 'Not allowed' }
    connection.textContent = words[state] ?? state
    connection.title = error ? `${error.message} ${error.code ? `(${error.code})` : ''}` : ''
    const trouble = byID('trouble')
    const away = state === 'retrying' && !app.timeline
    trouble.hidden = !(state === 'gone' || state === 'refused' || away)
    document.body.toggleAttribute('data-nothing', !trouble.hidden)
    const now = trouble.hidden ? '' : `${state} ${error?.code}`
    if (now === told) return
    told = now
    trouble.toggleAttribute('data-away', away)
    put(trouble, trouble.hidden ? null : [
      h('p', { 'data-test': 'error' }, error?.code === UNREACHABLE_NAME || away ? h('strong', {}, error?.message ?? '') : reasons[state], error?.status ? h('code', {}, error.code) : null),
      away ? h('p', {}, 'Is the daemon running? The page tries again by itself, and continues when the server is back.') : null,
      state === 'refused' ? h('button', { type: 'button', onclick: () => askForToken(app, false) }, 'Use another token') : null,
    ])
  }
  app.on('live', show)
  app.on('timeline', show)
  app.on('session', show)
  show()

  const theme = byID('theme')
  let now = read()
  const paint = () => {
    if (now === 'auto') delete document.documentElement.dataset.theme
    else document.documentElement.dataset.theme = now
    put(theme, icon({ auto: 'auto', light: 'sun', dark: 'moon' }[now]))
    theme.setAttribute('aria-label', `Colours: ${now}. Change`)
    theme.title = `Colours: ${now}`
    app.emit('theme')
  }
  theme.addEventListener('click', () => {
    now = themes[(themes.indexOf(now) + 1) % themes.length]
    try {
      localStorage.setItem(THEME, now)
    } catch { /* then it lasts until the page is left */ }
    paint()
  })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => app.emit('theme'))
  paint()

  const drawer = byID('drawer')
  put(drawer, icon('menu'))
  const open = (yes) => {
    document.body.toggleAttribute('data-drawer', yes)
    drawer.setAttribute('aria-expanded', String(yes))
  }
  drawer.addEventListener('click', () => open(!document.body.hasAttribute('data-drawer')))
  app.on('session', () => { if (app.session !== null) open(false) })
  byID('veil').addEventListener('click', () => open(false))
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || event.defaultPrevented || !document.body.hasAttribute('data-drawer')) return
    open(false)
    drawer.focus()
  })

  document.querySelector('.skip').addEventListener('click', (event) => {
    event.preventDefault() // the address is the session's
    byID('stage').focus()
  })

  const where = () => {
    document.body.toggleAttribute('data-empty', app.session === null)
    document.body.removeAttribute('data-new')
    document.body.toggleAttribute('data-comparing', app.compareTo !== null)
    document.title = app.session === null ? 'helixd debugger' : `${app.session} · helixd`
  }
  app.on('session', where)
  app.on('at', where)
  where()
}

function read() {
  try {
    const stored = localStorage.getItem(THEME)
    return themes.includes(stored) ? stored : 'auto'
  } catch {
    return 'auto'
  }
}

// askForToken asks who it is that asks. refused: the token that there was is
// not good.
function askForToken(app, refused) {
  const place = byID('signin')
  const tell = (what) => {
    const wrong = place.querySelector('.wrong')
    wrong.textContent = what
    wrong.hidden = !what
  }
  const unknown = refused ? 'The server does not know that token.' : ''
  if (!place.hidden) {
    tell(unknown)
    return
  }
  place.hidden = false
  const input = h('input', {
    id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, 'data-test': 'token-input', 'aria-describedby': 'token-note',
  })
  put(place, h('form', {
    class: 'card', onsubmit: (event) => {
      event.preventDefault()
      const token = input.value.trim()
      if (!/^[\x21-\x7e]+$/.test(token)) { // a header can't carry it
        tell('A token has no spaces, and no letters but those of ASCII.')
        return
      }
      app.api.setToken(token)
      place.hidden = true
      put(place)
      app.signedIn()
    },
  },
  h('h1', {}, 'Sign in'),
  h('p', { id: 'token-note' }, 'This server wants a token. It stays in this tab, and is sent to this server alone.'),
  h('label', { for: 'token' }, 'Token'),
  input,
  h('p', { class: 'wrong', role: 'alert', 'data-test': 'error', hidden: !unknown }, unknown),
  h('button', { type: 'submit', class: 'primary', 'data-test': 'token-submit' }, 'Sign in')))
  input.focus()
}

mountBar()
app.start()
