package request

import (
	"context"

	"github.com/helixd/helixd/projector"
)

type mayUseKey struct{}

// WithMayUse returns a context in which requests use sessions only in states for which may
// returns no error.
func WithMayUse(ctx context.Context, may func(*projector.Tree) error) context.Context {
	return context.WithValue(ctx, mayUseKey{}, may)
}

// MayUse returns why a request must not use a session in this state.
func MayUse(ctx context.Context, t *projector.Tree) error {
	if may, ok := ctx.Value(mayUseKey{}).(func(*projector.Tree) error); ok && t != nil {
		return may(t)
	}
	return nil
}
