// Package result says what a change of agents did to recorded sessions: it compares lanes, gives
// verdicts, evaluates assertions, and writes the lab's report as JSON, JUnit XML and Markdown.
//
// The package is pure. It reads no file, no clock and no network, and the same lanes give the same
// report byte for byte, in whichever order the sessions were run.
//
// A session has three kinds of lanes:
//
//   - observed: what was recorded,
//   - baseline: the agents of the baseline, driven with the session's inputs,
//   - candidate: the changed agents, driven with the same inputs.
//
// [Rules.Compare] judges one session, [New] makes the report of all.
package result
