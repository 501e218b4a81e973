// The lab view: in place of the timeline and the conversation of a session that is a lab. The
// address says which session of the lab is open.

import { failure } from './dialog.js'
import { h, put } from './dom.js'
import { createLab } from './labdata.js'
import { createHead } from './labhead.js'
import { createLabels } from './lablabels.js'
import { createLanes } from './lablanes.js'
import { isLab, showsLab } from './labs.js'
import { createTable } from './labtable.js'
import { Latest } from './states.js'

export function mount(element, app) {
  let view = null // of the lab that is shown
  const toLab = h('button', { type: 'button', class: 'lab-return', 'data-test': 'lab-return', hidden: true, onclick: () => app.go({ at: null, compareTo: null, plain: false }) }, 'Lab view')
  document.getElementById('timeline').before(toLab)

  // begin shows a lab from scratch.
  function begin() {
    view?.end.abort()
    view = null
    put(element)
    if (app.session === null) return
    const end = new AbortController()
    const lab = createLab(app, app.session)
    const filter = { verdict: '' }
    const trouble = h('div', {})
    const loading = h('p', { class: 'muted', role: 'status' }, 'Loading the lab…')
    const head = createHead(lab, () => filter.verdict, (verdict) => {
      filter.verdict = verdict
      view.table?.rewind()
      draw()
    }, () => app.go({ plain: true }))
    const page = h('div', { class: 'lab-page' }, head.element, trouble, loading)
    put(element, page)
    view = { session: app.session, end, lab, filter, head, page, trouble, loading, table: null, lanes: null, top: 0, open: null }
    news.ask(view)
  }

  const news = new Latest(app, async (mine) => {
    if (mine !== view || !app.timeline || !showsLab(app)) return
    const { lab, trouble, end } = mine
    try {
      const from = lab.version
      await lab.read(end.signal)
      if (mine !== view) return
      put(trouble)
      if (!mine.table && lab.begun) parts(mine)
      if (lab.version !== from) draw()
    } catch (err) {
      if (mine === view && !end.signal.aborted) put(trouble, failure(err), h('button', { type: 'button', onclick: () => news.ask(mine) }, 'Try again'))
    }
    if (mine === view) element.dataset.ready = `${lab.rows.size}`
  })

  // parts builds what needs to know the cohort.
  function parts(mine) {
    const { lab, filter, end } = mine
    const labels = createLabels(app, lab.begun.hash)
    mine.labels = labels
    mine.table = createTable(app, lab, labels, filter)
    mine.lanes = createLanes(app, lab, labels, mine.table, end.signal)
    mine.loading.replaceWith(mine.table.element)
    labels.load(end.signal).catch((err) => !end.signal.aborted && put(mine.trouble, failure(err)))
    draw()
  }

  // draw shows what there is: the table, or the lanes of a session.
  function draw() {
    const { lab, head, table, lanes, page } = view
    head.update(app.timeline?.streamStatus === 'ended' ? 'ended' : app.timeline?.status === 'failed' ? 'failed' : 'running')
    if (!table) return
    table.update()
    if (app.part !== null) {
      if (view.open === null) view.top = element.scrollTop
      if (element.firstChild !== lanes.element) {
        put(element, lanes.element)
        element.scrollTop = 0
      }
      lanes.show(app.part)
    } else if (element.firstChild !== page) {
      put(element, page)
      element.scrollTop = view.top
      table.focus(view.open)
      lanes.clear()
    }
    view.open = app.part
  }

  function show() {
    const lab = isLab(app.session, app.timeline)
    if (lab && (app.at !== null || app.compareTo)) app.plain = true // until somebody asks for the lab view again
    const now = showsLab(app)
    document.body.toggleAttribute('data-lab', now)
    toLab.hidden = !lab || now
    if (!now) return
    if (view?.session !== app.session) begin()
    else news.ask(view)
    if (view.table) draw()
  }

  const keys = {
    n: () => open(1),
    p: () => open(-1),
    d: () => view.lanes.reveal(),
    g: () => label(true),
    b: () => label(false),
    ArrowDown: () => app.part === null && view.table.step(1),
    ArrowUp: () => app.part === null && view.table.step(-1),
    Escape: () => app.part !== null && app.go({ part: null }),
  }
  const open = (by) => {
    const next = app.part === null ? undefined : view.table.next(app.part, by)
    if (next !== undefined) app.go({ part: next })
  }
  const label = (good) => {
    const session = app.part ?? view.table.focused()
    if (session !== undefined && view.lab.rows.has(session)) view.labels.toggle(session, good)
  }
  document.addEventListener('keydown', (event) => {
    if (!document.body.hasAttribute('data-lab') || !view?.table || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (document.querySelector('dialog[open]') || event.target.closest?.('input, textarea, select, #sessions, #bar')) return
    const does = keys[event.key]
    if (!does || does() === false) return
    event.preventDefault()
  })

  app.on('reset', () => {
    view?.end.abort()
    view = null
  })
  for (const event of ['session', 'at', 'timeline', 'part']) app.on(event, show)
  show()
}
