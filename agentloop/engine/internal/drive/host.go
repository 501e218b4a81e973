package drive

import (
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
)

// Host is what trees are driven with on this node.
type Host struct {
	record.Clock
	Log          eventlog.Log
	Node         string
	Shared       bool // other nodes may continue a tree that is released
	Logger       *slog.Logger
	Metrics      *metrics.Metrics
	Quota        *quota.Quota
	RetryDelay   time.Duration // before the first repetition of a model call
	Tracer       trace.Tracer  // nil: no spans
	TraceContent bool
	Files        *files.Files
	Goroutines   *sync.WaitGroup             // of all goroutines
	Drains       <-chan struct{}             // closed when the node drains
	HandsOver    func(agentType string) bool // whether an agent's runs are to continue on other nodes
	// Spread reports whether a tree should continue at another node, which is less busy. It
	// is to be handed over then.
	Spread func(session, agentType string) bool
}
