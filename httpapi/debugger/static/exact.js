// JSON whose long numbers keep their digits: ids in tools' arguments are often
// longer than the page can count.

// Exact is a number that has more digits than the page can count with.
export class Exact {
  constructor(source) {
    this.source = source
  }

  toString() {
    return this.source
  }

  toJSON() {
    return JSON.rawJSON?.(this.source) ?? this.source
  }
}

// parse reads JSON. Numbers that would lose digits are Exact.
export function parse(text) {
  if (!/(?:^|[:[,])\s*-?(?:[\d.]{16}|[\d.]+e)/i.test(text)) return JSON.parse(text)
  return JSON.parse(text, (_, value, context) => (typeof value === 'number' && context && loses(value, context.source) ? new Exact(context.source) : value))
}

function loses(value, source) {
  if (Number.isSafeInteger(value)) return false
  const digits = source.replace(/e.*$/i, '').replace(/\D/g, '').replace(/^0+/, '')
  return !Number.isFinite(value) || digits.length > 17 || /^-?\d+$/.test(source)
}
