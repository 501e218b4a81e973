// The whole session in a strip, with the part that is in view.

import { h, put } from './dom.js'
import { pointers } from './pointers.js'

const EDGE = 8 // px, of the handles
const LEAST_FRAME = 12 // px

// createOverview draws into an element. show changes the view.
export function createOverview(element, { colours, plan, axis, view, show, position }) {
  const canvas = h('canvas', { 'aria-hidden': 'true' })
  const frame = h('div', { class: 'ov-frame' }, h('span', { class: 'ov-edge' }), h('span', { class: 'ov-edge' }))
  const needle = h('div', { class: 'ov-needle' })
  put(element, canvas, frame, needle)
  let width = 1, height = 1, dragging = null, drawn = ''

  // resized looks how large the strip is. Only then: to ask has the browser lay
  // the whole page out.
  function resized() {
    width = Math.max(1, element.clientWidth)
    height = Math.max(1, element.clientHeight)
  }
  resized()

  const px = (x) => x / (axis().length * 1.01) * width
  const unpx = (p) => p / width * axis().length * 1.01

  pointers(element, {
    begin(event) {
      const x = event.clientX - element.getBoundingClientRect().left
      const a = px(view().from), b = px(view().to)
      const whole = b - a > width - 2
      if (!whole && Math.abs(x - a) < EDGE) dragging = 'from'
      else if (!whole && Math.abs(x - b) < EDGE) dragging = 'to'
      else if (!whole && x > a && x < b) dragging = 'both'
      else dragging = { anchor: x }
    },
    move(dx, dy) {
      const by = unpx(dx)
      if (dragging === 'from') show(Math.min(view().from + by, view().to), view().to)
      else if (dragging === 'to') show(view().from, Math.max(view().to + by, view().from))
      else if (dragging === 'both') show(view().from + by, view().to + by)
      else {
        dragging.now = (dragging.now ?? dragging.anchor) + dx
        show(unpx(Math.min(dragging.anchor, dragging.now)), unpx(Math.max(dragging.anchor, dragging.now)))
      }
    },
    click(event) {
      if (dragging === 'from' || dragging === 'to' || dragging === 'both') return
      const size = view().to - view().from, x = unpx(event.clientX - element.getBoundingClientRect().left)
      show(x - size / 2, x + size / 2)
    },
  })

  // draw paints what there is only if that has changed, and moves the frame.
  function draw(what) {
    const now = `${what} ${width} ${height} ${devicePixelRatio}`
    if (now !== drawn) paint()
    drawn = now
    const a = px(view().from), b = Math.max(px(view().to), a + LEAST_FRAME)
    frame.style.transform = `translateX(${a}px)`
    frame.style.width = `${Math.min(b, width) - a}px`
    frame.toggleAttribute('data-whole', b - a > width - 2)
    drawPosition()
  }

  function paint() {
    const scale = devicePixelRatio || 1
    canvas.width = Math.round(width * scale)
    canvas.height = Math.round(height * scale)
    const c = canvas.getContext('2d'), colour = colours()
    c.scale(scale, scale)
    const lanes = plan().lanes
    const row = Math.max(1.5, Math.min(7, (height - 6) / Math.max(1, lanes.length)))
    let y = Math.max(3, (height - row * lanes.length) / 2)
    for (const lane of lanes) {
      for (const runs of [true, false]) {
        for (const { span } of lane.spans) {
          if ((span.kind === 'run') !== runs || span.kind === 'step') continue
          const a = px(axis().left(span.from)), b = px(axis().x(span.to))
          c.fillStyle = colour.of(span)
          c.globalAlpha = span.struck ? 0.35 : span.kind === 'run' ? 0.35 : 1
          c.fillRect(a, y, Math.max(0.75, b - a), Math.max(1, row - 1))
        }
      }
      c.globalAlpha = 1
      c.fillStyle = colour.bad
      for (const mark of lane.marks) {
        if (mark.kind === 'takeover' || mark.kind === 'error' || mark.kind === 'rollback') c.fillRect(px(axis().x(mark.sequence)) - 0.5, y - 1, 1.5, row + 1)
      }
      y += row
      if (y > height) break
    }
  }

  function drawPosition() {
    needle.style.transform = `translateX(${Math.round(px(position()))}px)`
  }

  return { draw, drawPosition, resized }
}
