// Building the page. Whatever a session holds reaches the document as text
// alone: there is no way here to give markup.

const SVG = 'http://www.w3.org/2000/svg'

// h makes an element. Properties that are functions are listeners (onclick),
// `style` is an object of CSS properties, `class` may be a list, and what is
// null, undefined or false is left out, of the children too.
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children)
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(name.slice(2), value)
    else if (name === 'style') for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v)
    else if (name === 'class' && Array.isArray(value)) element.className = value.filter(Boolean).join(' ')
    else if (name === 'value') element.value = value
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  add(element, children)
  return element
}

function add(element, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(element, child)
    else if (child instanceof Node) element.append(child)
    else if (child !== null && child !== undefined && child !== false) element.append(document.createTextNode(String(child)))
  }
}

// put makes the children those of an element, instead of what it had.
export function put(element, ...children) {
  element.replaceChildren()
  add(element, children)
  return element
}

// setText changes a text only if it is another one, so that nothing is laid
// out for nothing.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text
}

// builtIn is the child that an element has for a key, if it has one.
export function builtIn(element, key) {
  const child = element?.byKey?.get(key)
  return child?.parentNode === element ? child : undefined
}

// reconcile makes the children of an element those of some keys. Children that go
// are removed first: one that stays is then not moved, and keeps the focus.
export function reconcile(element, keys, build, then = () => {}) {
  const children = keys.map((key, i) => builtIn(element, key) ?? build(key, i))
  const stay = new Set(children)
  for (const child of [...element.childNodes]) if (!stay.has(child)) child.remove()
  let next = element.firstChild
  children.forEach((child, i) => {
    then(child, keys[i])
    if (child === next) next = next.nextSibling
    else element.insertBefore(child, next)
  })
  element.byKey = new Map(children.map((child, i) => [keys[i], child]))
}

const icons = {
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9Zm3.4 7.9 3.1 3.1',
  sun: 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6ZM8 .8v1.6M8 13.6v1.6M.8 8h1.6M13.6 8h1.6M2.9 2.9 4 4M12 12l1.1 1.1M2.9 13.1 4 12M12 4l1.1-1.1',
  moon: 'M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1Z',
  auto: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Zm0 0v12M8 5l4-1.5M8 8h6M8 11l4 1.5',
  help: 'M6 6a2 2 0 1 1 2.9 1.8c-.6.3-.9.7-.9 1.4M8 11.4v.2M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Z',
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  close: 'm4 4 8 8M12 4l-8 8',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  live: 'M8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6ZM4.5 4.5a5 5 0 0 0 0 7M11.5 4.5a5 5 0 0 1 0 7',
  back: 'm10 3-5 5 5 5',
  next: 'm6 3 5 5-5 5',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  filter: 'M2.5 3.5h11M4.5 8h7M6.5 12.5h3',
}

// icon returns a picture that says nothing to screen readers: the text beside
// it, or the label of its button, does.
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg')
  const path = document.createElementNS(SVG, 'path')
  for (const [k, v] of Object.entries({ viewBox: '0 0 16 16', class: 'icon', 'aria-hidden': 'true', focusable: 'false' })) svg.setAttribute(k, v)
  path.setAttribute('d', icons[name])
  svg.append(path)
  return svg
}
