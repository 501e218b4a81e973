package engine

import (
	"log/slog"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"go.opentelemetry.io/otel/trace"
)

// host is what trees are driven with on this node.
type host struct {
	maker
	log          eventlog.Log
	node         string
	shared       bool // other nodes may go on with a tree that is let go
	logger       *slog.Logger
	metrics      *meters // nil: nothing is measured
	quota        *quota.Quota
	retryDelay   time.Duration // before the first repetition of a model call
	tracer       trace.Tracer  // nil: no spans
	traceContent bool
	workspaces   plan.Providers
	wg           *sync.WaitGroup             // of all goroutines
	drains       <-chan struct{}             // closed when the node drains
	leaves       func(agentType string) bool // whether an agent's runs shall go on elsewhere
	gates        gates                       // of workspaces that are in use, by session
}
