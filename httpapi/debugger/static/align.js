// Two lists side by side.

const most = 400 // that are aligned with care

// align returns rows of an item of each list, or null where one has none. Equal items stand beside
// each other, and between them those that are kin, in their order. An item that waits lets the
// other list go first.
export function align(a, b, { equal, kin, waits = () => false }) {
  let front = 0
  while (front < a.length && front < b.length && equal(a[front], b[front])) front++
  let end = 0
  while (end < a.length - front && end < b.length - front && equal(a.at(-1 - end), b.at(-1 - end))) end++
  const rows = a.slice(0, front).map((x, i) => [x, b[i]])
  between(a.slice(front, a.length - end), b.slice(front, b.length - end), { equal, kin, waits }, rows)
  for (let i = end; i > 0; i--) rows.push([a.at(-i), b.at(-i)])
  return rows
}

function between(a, b, { equal, kin, waits }, rows) {
  let [i, j] = [0, 0]
  for (const [x, y] of [...pairs(a, b, equal), [a.length, b.length]]) {
    while (i < x || j < y) {
      if (i < x && j < y && kin(a[i], b[j])) rows.push([a[i++], b[j++]])
      else if (i < x && (j >= y || !waits(a[i]) || x - i > y - j)) rows.push([a[i++], null])
      else rows.push([null, b[j++]])
    }
    if (x < a.length && y < b.length) rows.push([a[i++], b[j++]])
  }
}

// pairs returns the places of a longest common subsequence.
function pairs(a, b, equal) {
  if (a.length > most || b.length > most) return []
  const w = b.length + 1
  const long = new Uint16Array((a.length + 1) * w)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) long[i * w + j] = equal(a[i], b[j]) ? long[(i + 1) * w + j + 1] + 1 : Math.max(long[(i + 1) * w + j], long[i * w + j + 1])
  }
  const out = []
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (equal(a[i], b[j])) out.push([i++, j++])
    else if (long[(i + 1) * w + j] >= long[i * w + j + 1]) i++
    else j++
  }
  return out
}
