// Package lane reads what agents did from the records of a session: the decisions in their
// order, what came from outside, and the recorded answers by what was asked. It does no I/O.
package lane
