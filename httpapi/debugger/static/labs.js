// What is known of labs by names: their sessions, their verdicts.

const lab = /^lab-[0-9a-f]{12}-\d+$/
const lane = /^lab-[0-9a-f]{12}-\d+\.\d+-(baseline|candidate)-\d+(\.\d+)?$/

// isLab says whether a session is a lab. While its timeline is not known, its id has to do.
export function isLab(session, timeline) {
  if (session === null || !lab.test(session)) return false
  return !timeline || timeline.lanes.find((l) => l.sessionId === session)?.agentType === 'lab'
}

// showsLab says whether the page shows the lab view, and not what it shows of any session.
export const showsLab = (app) => isLab(app.session, app.timeline) && !app.plain && app.at === null && app.compareTo === null

// isLane says whether a session is a lane of a lab, as it was driven.
export const isLane = (session) => lane.test(session)

// labelsOf is the session with people's labels of the sessions of a cohort.
export const labelsOf = (hash) => `lab-labels-${hash.slice(0, 12)}`

// verdicts are in the order of a table, each with its colour.
export const verdicts = new Map([['regression', 'bad'], ['unjudged', 'warn'], ['flaky', 'warn'], ['improvement', 'good'], ['changed', 'live'], ['same', 'muted']])
