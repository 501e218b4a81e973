package engine

import (
	"context"

	"github.com/helixd/helixd/eventlog/fact"
)

// Interrupt asks the session's run to stop for now: it can be resumed. The request is a record: the node that drives the run
// fulfils it, at once during a model call, otherwise at the step's end. A session that
// does not run is left as it is, but for its sub-agents that have outlived its
// turn. It returns when the wish is durable; see AwaitStop.
//
// A run whose process has died is taken over to be stopped: a node that drives a
// run which can't stop at once acknowledges the request within a second.
//
// Errors: eventlog.ErrSessionNotFound and what the log returns.
func (l *Loop) Interrupt(ctx context.Context, session, reason string) error {
	return l.requests.Stop(ctx, session, "", fact.StopInterrupt, reason)
}

// Abort ends the session's run for good, also one that waits: it has failed. A
// node that does not meet that within a second loses the run. Other terms as
// Interrupt. Remote agents get the request, too, also those of a process that has
// died, as far as they can be reached. An agent of the session's type need not
// be here.
func (l *Loop) Abort(ctx context.Context, session, reason string) error {
	return l.requests.Stop(ctx, session, "", fact.StopAbort, reason)
}

// AbortRun is Abort if the run is the session's and has not ended. One that has, or waits, is
// left as it is, as is what has followed it.
func (l *Loop) AbortRun(ctx context.Context, session, run, reason string) error {
	return l.requests.Stop(ctx, session, run, fact.StopAbort, reason)
}

// AwaitStop waits until all requests to stop in the log are fulfilled, in
// the whole tree: a run that was suspended has ended before its session has
// stopped, and a sub-agent may have outlived its parent's turn.
func (l *Loop) AwaitStop(ctx context.Context, session string) error {
	return l.requests.AwaitStop(ctx, session)
}
