// Package agui serves clients of AG-UI, the Agent User Interaction Protocol.
//
// It has no store. A thread is a session. The events of a run are a fold of the run's records,
// so that each has the same id whenever, and on whichever node, it is read.
//
// Programs use its [Options]; the rest is for package httpapi.
package agui
