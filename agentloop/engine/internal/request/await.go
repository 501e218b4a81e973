package request

import (
	"context"

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
