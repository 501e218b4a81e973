// How times, amounts and foreign text are shown.

// Characters that hide or reorder adjacent ones, or are not printable. Joiners of emoji
// are kept.
const unseen = new RegExp('(?<!\\p{Extended_Pictographic}[\\u{1f3fb}-\\u{1f3ff}\\ufe0f]?)\\u200d|\\u200d(?!\\p{Extended_Pictographic})|' +
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200c\\u200e\\u200f\\u2028-\\u202e' +
  '\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e0fff}]', 'gu')

// plain shows such characters by their names, so that what is read is what is
// there.
export function plain(text) {
  return String(text ?? '').replace(unseen, (c) => c === '\r' ? '␍' : `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`)
}

// line is plain on one line, at most so many characters.
export function line(text, most = 200) {
  const one = plain(String(text ?? '').slice(0, most * 4).replace(/\s+/g, ' '))
  return one.length > most ? one.slice(0, most - 1) + '…' : one
}

// around is the part of a text that has the first of some words in it, on one line, as
// {text, hit} pieces, of which hit is such a word.
export function around(text, words, most = 110) {
  const one = plain(String(text ?? '').replace(/\s+/g, ' '))
  const wanted = words.filter(Boolean).map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).sort((a, b) => b.length - a.length)
  if (!wanted.length) return [{ text: line(one, most) }]
  const found = new RegExp(`(${wanted.join('|')})`, 'giu')
  const first = one.search(found)
  const from = first > 30 && one.length > most ? one.indexOf(' ', first - 30) + 1 : 0
  const cut = (from > 0 ? '…' : '') + one.slice(from, from + most) + (one.length > from + most ? '…' : '')
  return cut.split(found).map((text, i) => ({ text, hit: i % 2 === 1 })).filter((piece) => piece.text)
}

const whole = new Intl.NumberFormat('en')

export const number = (n) => whole.format(n ?? 0)

// short is a number in few characters: 1.2k, 3.4M.
export function short(n) {
  for (const [unit, letter] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (n >= unit * 0.9995) return (n / unit).toFixed(n < unit * 9.95 ? 1 : 0).replace(/\.0$/, '') + letter
  }
  return String(n ?? 0)
}

// money is a cost in dollars, with the digits that matter.
export function money(cost) {
  if (!cost) return '$0'
  return '$' + (Math.abs(cost) >= 1 ? cost.toFixed(2) : Number(cost.toPrecision(2)).toLocaleString('en', { maximumFractionDigits: 8 }))
}

// duration is a time span given in ms: 12 ms, 3.4 s, 5 m 06 s.
export function duration(ms) {
  if (!(ms >= 0)) return ''
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9950 ? 1 : 0).replace(/\.0$/, '')} s`
  const s = Math.round(ms / 1000)
  if (s < 3600) return `${Math.floor(s / 60)} m ${String(s % 60).padStart(2, '0')} s`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${String(Math.floor(s / 60) % 60).padStart(2, '0')} m`
  return `${Math.floor(s / 86_400)} d ${Math.floor(s / 3600) % 24} h`
}

// ago is how long a time lies back.
export function ago(ms, now = Date.now()) {
  const s = Math.max(0, (now - ms) / 1000)
  if (s < 5) return 'now'
  if (s < 60) return `${Math.floor(s)} s`
  if (s < 3600) return `${Math.floor(s / 60)} min`
  if (s < 86_400) return `${Math.floor(s / 3600)} h`
  if (s < 86_400 * 30) return `${Math.floor(s / 86_400)} d`
  return new Date(ms).toLocaleDateString('en', { year: 'numeric', month: 'short', day: 'numeric' })
}

// moment is a time as a person reads it, to the millisecond.
export function moment(ms) {
  if (!ms) return ''
  const d = new Date(ms), two = (n, digits = 2) => String(n).padStart(digits, '0')
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ` +
    `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${two(d.getMilliseconds(), 3)}`
}
