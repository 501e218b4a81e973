package jetstream

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// refuses tells why nothing should be stored now, empty if it may.
func (l *store) refuses(frees bool) string {
	if err := l.serverProblem(); err != nil {
		return err.Error()
	}
	if l.opts.Refuses == nil {
		return ""
	}
	return l.opts.Refuses(frees)
}

// freeing marks the context of what makes room, though it stores a little.
type freeing struct{}

// frees returns ctx for what makes room, or ErrRefused: even that needs some.
func (l *store) frees(ctx context.Context) (context.Context, error) {
	if why := l.refuses(true); why != "" {
		return ctx, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	return context.WithValue(ctx, freeing{}, true), nil
}
