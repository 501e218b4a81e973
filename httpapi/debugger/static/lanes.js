// Which row of which lane a span is in. A lane is an agent: its runs, its
// steps, messages, and below that what happens at the same time.

export const MARKS = 14, SLIM = 18, ROW = 22, GAP = 2, PAD = 6
const MOST_ROWS = 8 // of what happens at the same time; more overlap

const fixed = { run: 0, step: 1, user: 2, reasoning: 2, text: 2, custom: 2, outside: 2 }

// arrange returns the lanes with their places, and the height of all.
export function arrange(timeline) {
  const lanes = timeline.lanes.map((lane) => ({ ...lane, spans: [], marks: [], used: new Set(), rows: [] }))
  const byID = new Map(lanes.map((l) => [l.sessionId, l]))
  for (const span of timeline.spans) {
    const lane = byID.get(span.lane)
    if (!lane) continue
    let row = fixed[span.kind]
    if (row === undefined) {
      let free = lane.rows.findIndex((end) => end < span.from)
      if (free < 0) free = lane.rows.length < MOST_ROWS ? lane.rows.length : MOST_ROWS - 1
      lane.rows[free] = span.open ? Infinity : Math.max(span.to, lane.rows[free] ?? 0)
      row = 3 + free
    }
    lane.used.add(row)
    lane.spans.push({ span, row })
  }
  for (const mark of timeline.marks) byID.get(mark.lane)?.marks.push(mark)

  let top = 0
  for (const lane of lanes) {
    lane.top = top
    let y = PAD + (lane.marks.length ? MARKS + GAP : 0)
    const tops = new Map()
    for (const row of [...lane.used].sort((a, b) => a - b)) {
      const height = row < 2 ? SLIM : ROW
      tops.set(row, { y, height })
      y += height + GAP
    }
    for (const item of lane.spans) Object.assign(item, tops.get(item.row))
    lane.height = Math.max(y + PAD - GAP, 34)
    top += lane.height
  }
  return { lanes, height: top }
}
