package request

import (
	"context"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Await follows the session until its state is as wanted.
func (c *Core) Await(ctx context.Context, session string, wanted func(*projector.Tree) bool) (*projector.Tree, error) {
	t, err := c.States.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	if wanted(t) {
		return t, nil
	}
	for r, err := range c.Log.Follow(ctx, session, t.Head) {
		if err != nil {
			return nil, err
		}
		if projector.Apply(t, r); wanted(t) {
			return t, nil
		}
	}
	return nil, context.Cause(ctx)
}

// AwaitStop waits until all requests to stop are fulfilled in the session's tree.
func (c *Core) AwaitStop(ctx context.Context, session string) error {
	_, err := c.Await(ctx, session, Stopped)
	return err
}

// Stopped reports whether all requests to stop are fulfilled in a tree.
func Stopped(t *projector.Tree) bool { return !slices.ContainsFunc(t.Sessions(), stopWanted) }

// stopWanted reports whether a wish to stop has not been met. A further run
// voids it.
func stopWanted(s *projector.Session) bool {
	if s.Turn == nil || s.Turn.Stop == nil {
		return false
	}
	return s.Turn.Stop.Kind == eventlog.StopAbort || s.Status == projector.SessionActive
}
