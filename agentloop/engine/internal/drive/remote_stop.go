package drive

import (
	"context"
	"errors"
	"time"

	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// stop hands on that the run was stopped. Where this process only leaves the
// run, the remote session continues.
func (r *remoteCall) stop(ctx context.Context, cause error) {
	if !errors.Is(cause, errUnwanted) {
		return
	}
	tell, reason := r.Transport.Abort, ""
	stopped, softly := false, false
	r.look(func(s *projector.Session) {
		if s.Turn == nil || s.Turn.Stop == nil {
			return
		}
		stopped, reason = true, s.Turn.Stop.Reason
		if s.Turn.Stop.Kind == fact.StopInterrupt {
			tell, softly = r.Transport.Interrupt, true
		}
	})
	switch {
	case !stopped:
		return
	case !softly:
		r.noteStopped()
	}
	r.tell(context.WithoutCancel(ctx), tell, reason)
}

// stopRemote aborts the remote session of a call whose process has died, or
// was interrupted.
func (t *task) stopRemote(ctx context.Context, e decide.StopRemote) {
	r := &remoteCall{
		task: t, RemoteAgent: t.def.Remotes[e.Call.Name], c: t.newCall("", e.Call), id: e.Call.Pending.Child,
	}
	defer r.noteStopped()
	reason := ""
	t.look(func(s *projector.Session) {
		if s.Turn != nil && s.Turn.Stop != nil {
			reason = s.Turn.Stop.Reason
		}
	})
	r.tell(ctx, r.Transport.Abort, reason)
}

// noteStopped remembers that the remote session is not to be aborted again.
func (r *remoteCall) noteStopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped[decide.StopKey(r.session, r.c.ID)] = true
}

// remoteStopTimeout is how long a remote server has to answer to a stop.
const remoteStopTimeout = 10 * time.Second

// tell stops the remote session, if it can be reached.
func (r *remoteCall) tell(ctx context.Context, stop func(context.Context, string, string) error, reason string) {
	ctx, cancel := context.WithTimeout(ctx, remoteStopTimeout)
	defer cancel()
	if err := stop(ctx, r.id, reason); err != nil && !remote.IsNotFound(err) { // it has never got there
		r.logger().Warn("a remote agent could not be stopped", eventlog.LogCall, r.c.ID, "error", err)
	}
}
