// The last records of a session up to one of them. The log is read forwards, and all sessions share
// its sequences: how far back some records are is found by trying.

const FIRST = 100 // sequences that are read first
const FURTHER = 8 // times as many, as long as there is too little in them
const MOST = 100 // records that are read at once; where there are more, it was too far back

// readBack resolves to {all, after}: all records after that sequence up to n, in order, at least
// enough of them if there are so many. read resolves to the first of those with from < sequence <= to,
// at most limit, and sequenceOf returns the sequence of one.
export async function readBack(read, n, enough, sequenceOf) {
  const found = { all: [], after: n }
  let far = null // what was read too far back: {all, after, to}, after which there is more
  for (let span = FIRST; found.all.length < enough && found.after > 0; span *= FURTHER) {
    if (far && far.to >= found.after) {
      found.all.unshift(...far.all)
      found.after = far.after
      far = null
      continue
    }
    const room = found.after - (far?.to ?? 0)
    const after = found.after - Math.min(room, far && room > MOST ? Math.ceil(room / 2) : span)
    const all = await read({ from: after || undefined, to: found.after, limit: MOST })
    if (all.length === MOST) {
      far = { all, after, to: sequenceOf(all.at(-1)) }
    } else {
      found.all.unshift(...all)
      found.after = after
    }
  }
  return found
}
