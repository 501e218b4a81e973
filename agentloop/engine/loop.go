package engine

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/agentloop/engine/internal/drive"
	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/engine/internal/node"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// Options configure a loop; zero values mean the defaults.
type Options struct {
	Node   string           // names this process in claims; empty: a fresh id
	Logger *slog.Logger     // nil: silent
	Now    func() time.Time // nil: time.Now
	NewID  func() string    // unique for all time; nil: ULIDs
	// States folds the log; nil: a store without saved folds.
	States *snapshot.Store
	// Worklist, if set, is shared by the nodes of one log: runs of a node that dies
	// continue at another one, or here after a restart. Without it a run continues
	// on this node when a request asks for it, regardless of the node that drove it.
	Worklist agentloop.Worklist
	// RetryDelay is the pause before a failed model call is repeated; it
	// doubles each time, up to 30 s, and is longer if the provider asks for it. 0: DefaultRetryDelay.
	RetryDelay time.Duration
	// Metrics measure what the loop does; nil: nothing does.
	Metrics *Metrics
	// ExpireAfter is how long after it was asked for its last run a session
	// expires; see [admin.Admin.Sweep]. 0: never.
	ExpireAfter time.Duration
	// Quota limits what tenants use; nil: nothing does.
	Quota *quota.Quota
	// Tracer, if set, makes spans of runs, model calls and tool calls, by
	// OpenTelemetry's conventions for generative AI. Its provider should take
	// its ids from [TraceIDs], and must not export within a span's end: a batch
	// processor does not.
	Tracer trace.Tracer
	// Workspaces are the providers of agents' workspaces, one of each kind. An agent
	// that needs another kind is refused with a *WorkspaceWiringError.
	Workspaces []workspace.Provider
	// TraceContent has prompts, answers, arguments and results recorded in the
	// spans, shortened.
	TraceContent bool
}

// Metrics measure what a loop does. Labels are names that the agents' definitions
// have, or one of few words; what models and callers make up is "other".
type Metrics = metrics.Metrics

// NewMetrics registers what a loop measures. It panics if that is registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics { return metrics.New(reg) }

// Loop runs the agents of one node.
type Loop struct {
	// TimeTravel goes back in sessions, and forks them.
	TimeTravel *timetravel.History
	// Admin erases sessions, and removes what has expired.
	Admin *admin.Admin

	log      eventlog.Log
	states   *snapshot.Store
	clock    record.Clock
	agents   *node.Agents
	files    *files.Files
	node     *node.Node
	requests *request.Core
	wg       sync.WaitGroup
}

// New returns a loop for the given agents. It fails if one is ill-defined; with
// a *WorkspaceWiringError if one's workspace is of a kind that there is none of,
// and with a *WorkspaceFailedError if that offers less than the agent wants.
func New(log eventlog.Log, agents []agentloop.Agent, options *Options) (*Loop, error) {
	defs, err := plan.Compile(agents)
	if err != nil {
		return nil, err
	}
	o := withDefaults(log, options)
	providers, err := plan.ProvidersOf(o.Workspaces)
	if err == nil {
		err = providers.Check(defs)
	}
	if err != nil {
		return nil, err
	}
	o.Metrics.Agents(defs)
	l := &Loop{
		log: log, states: o.States, agents: node.NewAgents(defs),
		clock: record.Clock{Now: o.Now, NewID: o.NewID, ExpireAfter: o.ExpireAfter},
		files: &files.Files{Providers: providers, Logger: o.Logger, Metrics: o.Metrics},
	}
	l.requests = &request.Core{
		Log: log, States: l.states, Agents: l.agents, Clock: l.clock, Worklist: o.Worklist, Quota: o.Quota, Logger: o.Logger,
	}
	host := &drive.Host{ // of the trees that are driven
		Clock: l.clock, Log: log, Node: o.Node, Shared: o.Worklist != nil, Logger: o.Logger, Metrics: o.Metrics,
		Quota: o.Quota, RetryDelay: o.RetryDelay, Tracer: o.Tracer, TraceContent: o.TraceContent,
		Files: l.files, Goroutines: &l.wg,
	}
	l.node = node.New(host, l.states, o.Worklist, l.agents, l.requests.TellSuperseded)
	l.requests.Node = l.node
	l.TimeTravel, l.Admin = timetravel.New(l.requests, l.files), admin.New(l.requests, l.files)
	return l, nil
}

func withDefaults(log eventlog.Log, options *Options) (o Options) {
	if options != nil {
		o = *options
	}
	if o.States == nil {
		o.States = snapshot.New(log, nil)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = func() string { return ulid.Make().String() }
	}
	if o.Node == "" {
		o.Node = "node-" + o.NewID()
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or(o.Metrics, NewMetrics(nil))
	o.RetryDelay = cmp.Or(o.RetryDelay, agentloop.DefaultRetryDelay)
	return o
}

// Stop ends all runs as a crash would, so that they can be resumed, and waits
// for their goroutines. It is idempotent. See Drain for a gentler way.
func (l *Loop) Stop() {
	l.node.Stop()
	l.wg.Wait()
}

// Live reports whether this node is driving the session.
func (l *Loop) Live(session string) bool { return l.node.Live(session) }

// Driven reports whether a node drives the tree.
func (l *Loop) Driven(ctx context.Context, t *projector.Tree) bool { return l.node.IsDriven(ctx, t) }

// Executing reports whether the root's run continues: it is open, and a node
// drives it.
func (l *Loop) Executing(ctx context.Context, t *projector.Tree) bool {
	return l.node.Executing(ctx, t)
}

// Holds reports whether this node drives the session, or is about to. One that
// drives it looks at its log once more before it releases the tree, and takes over the
// ticket, unless that is 0.
func (l *Loop) Holds(session string, ticket uint64) bool { return l.node.Holds(session, ticket) }

// Offer drives a tree that is on the list, if it has work that no other node does.
// known reports that what was to be appended when the ticket was given is in the
// log, or never will be.
func (l *Loop) Offer(session string, ticket uint64, known bool) {
	l.node.Offer(session, ticket, known)
}

// Load is how many session trees this node drives; -1 if it should get no others.
func (l *Loop) Load() int { return l.node.Load() }

// Drain hands this node's runs over to other nodes, each at the end of its step, so
// that nothing is generated twice; runs of agents that no other node hosts finish
// here. Requests are still accepted, and their runs driven elsewhere. It returns when
// nothing is driven here any more, or with ctx. Stop ends what is left then; other
// nodes take it up in mid-step.
func (l *Loop) Drain(ctx context.Context) { l.node.Drain(ctx) }

// Draining reports whether Drain was called.
func (l *Loop) Draining() bool { return l.node.Draining() }
