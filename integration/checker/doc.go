// Package checker keeps sessions busy on a deployment while something happens to it, and
// holds what clients were promised against what every node answers. Half of the sessions
// are written by outside producers, half are runs of agents whose calls users answer, and
// each has clients that follow its stream.
//
// It starts no node and breaks none: its caller does, and says which nodes there are. Call
// [Checker.Learn] once all is ready, then [Checker.Load], [Checker.Rest] when nothing
// happens any more, and [Checker.Check]. In between, [Checker.Audit] looks at every session
// as it is. The first broken promise ends [Checker.Context].
package checker
