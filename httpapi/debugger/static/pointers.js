// Dragging, clicking and pinching, by mouse, pen and fingers alike.

// pointers listens to an element. `drag` gets each event while a pointer is
// down; `move` how far it went; `pinch` by how much two fingers came together
// and where; `click` what did not move. begin is called when one goes down.
export function pointers(element, { drag, move, pinch, click, begin, threshold = 0 }) {
  const down = new Map() // by pointer: where it is
  let start = null, moved = false

  element.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return
    down.set(event.pointerId, { x: event.clientX, y: event.clientY })
    if (down.size === 1) {
      start = { x: event.clientX, y: event.clientY, target: event.target }
      moved = false
    }
    begin?.(event)
    if (threshold === 0) element.setPointerCapture(event.pointerId)
    if (drag) {
      event.preventDefault()
      drag(event)
    }
  })

  element.addEventListener('pointermove', (event) => {
    const was = down.get(event.pointerId)
    if (!was) return
    if (event.pointerType === 'mouse' && event.buttons === 0) { // let go where nobody heard of it
      down.delete(event.pointerId)
      return
    }
    const now = { x: event.clientX, y: event.clientY }
    if (down.size === 2 && pinch) {
      const [other] = [...down].filter(([id]) => id !== event.pointerId).map(([, p]) => p)
      const before = Math.abs(was.x - other.x), after = Math.abs(now.x - other.x)
      if (before > 8 && after > 8) pinch(before / after, (now.x + other.x) / 2)
      moved = true
    } else if (drag) {
      drag(event)
    } else if (moved || Math.hypot(now.x - start.x, now.y - start.y) > threshold) {
      if (!moved && !element.hasPointerCapture(event.pointerId)) element.setPointerCapture(event.pointerId)
      moved = true
      move?.(now.x - was.x, now.y - was.y)
    } else {
      return // it stays where it went down
    }
    down.set(event.pointerId, now)
  })

  const up = (event) => {
    if (!down.delete(event.pointerId)) return
    if (down.size === 0 && !moved && event.type === 'pointerup') click?.(event)
  }
  element.addEventListener('pointerup', up)
  element.addEventListener('pointercancel', up)
}
