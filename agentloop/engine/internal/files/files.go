// Package files opens, saves, restores and removes the files in sessions'
// workspaces.
package files

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/internal/locks"
	"github.com/helixd/helixd/agentloop/internal/plan"
)

// Files are those that this node's providers of workspaces reach.
type Files struct {
	Providers plan.Providers
	Logger    *slog.Logger
	Metrics   *metrics.Metrics

	locks locks.Table // of workspaces that are in use, by session: a call that was given up may outlive the tree's claim
}

var errProviderPanicked = errors.New("the provider failed unexpectedly")

// Operations of a workspace provider, as labels of the metric.
const (
	askOpen     = "open"
	askResolve  = "resolve"
	askUse      = "use"
	askSnapshot = "snapshot"
	askRestore  = "restore"
	AskAdopt    = "adopt"
	askRemove   = "remove"
	askCollect  = "collect"
)

// Ask has a provider of workspaces do something. Its panic is an error.
func (f *Files) Ask(ctx context.Context, provider, what string, do func() error) (err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			f.Logger.Error("a provider of workspaces panicked", "provider", provider, "panic", p, "stack", string(debug.Stack()))
			err = errProviderPanicked
		}
		f.Metrics.Asked(ctx, provider, what, err, time.Since(began))
	}()
	return do()
}
