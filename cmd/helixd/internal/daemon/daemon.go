package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/beside"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/daily"
	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/sqlite"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// shutdownTimeout is for requests that are under way; longer than a slow log
	// takes to answer one, or its client would not learn what became of it.
	shutdownTimeout = api.WriteTimeout + 5*time.Second
)

// Daemon is everything that runs; close it in the reverse order of its start.
type Daemon struct {
	URL          string // where HTTP listens
	NATSURL      string // where NATS clients from outside connect, or empty
	webSocketURL string // the same over WebSocket
	Info         eventlog.Info
	server       jetstream.Server            // the embedded one; nil: there is none
	refuses      func(frees bool) string     // why nothing should be stored; nil: not known
	sync         func(context.Context) error // returns when all acknowledged messages are on the disk; nil: they always are
	dropRevoked  func()                      // disconnects NATS subscribers; nil: there is no embedded server
	starter      *starter
	certificates *certificates   // of HTTP; nil: it is plain
	models       *sqlite.Models  // nil: this node keeps none
	memories     *memory.Manager // nil: there is no index to find them in
	notify       *notifier       // nil: no service manager
	reloader     *reloader
	fill         []func(context.Context, eventlog.Log)
	join         bool          // wait for a log, and create none
	replaces     string        // the server of the cluster that is gone for good, in whose place this one comes
	openWithin   time.Duration // for the streams, once the server runs; 0: the default
	closers      []func()
}

// Start starts the parts that the configuration names. If it fails, it stops them
// again; the error is ctx's, too, if that has ended. fill appends what must be in
// the log before the first request.
func Start(ctx context.Context, c *config.Config, agents []agentloop.Agent, openNATS bool, log *slog.Logger, fill ...func(context.Context, eventlog.Log)) (*Daemon, error) {
	return (&Daemon{fill: fill}).started(ctx, c, agents, openNATS, log)
}

// started starts d, or stops what it has started.
func (d *Daemon) started(ctx context.Context, c *config.Config, agents []agentloop.Agent, openNATS bool, log *slog.Logger) (*Daemon, error) {
	if err := d.start(ctx, c, agents, openNATS, log); err != nil {
		d.close()
		if stopped := ctx.Err(); stopped != nil && !errors.Is(err, stopped) { // NATS's client and server don't say why they broke off
			err = fmt.Errorf("%w: %w", stopped, err)
		}
		return nil, err
	}
	return d, nil
}

func (d *Daemon) start(ctx context.Context, c *config.Config, agents []agentloop.Agent, openNATS bool, log *slog.Logger) error {
	listener, err := settings.Listen(ctx, c.Listen, "--listen ADDRESS")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	d.onClose(func() { listener.Close() })
	if d.certificates, err = openCertificates(c.TLS, log); err != nil {
		return err
	}
	d.starter = newStarter(mostConnections(c.Limits), d.certificates, log)
	if c.NATS.Cluster.Listen != "" { // it may wait for others for long; alone, clients wait for it
		d.starter.serve(listener)
	}
	if c.NATS.URL == "" { // before the minter makes a key in the folder
		if err := embed.CheckFormat(settings.ServerFolder(c.DataDir)); err != nil {
			return err
		}
	}
	minter, err := minterOf(c)
	if err != nil {
		return err
	}
	revocations := revocationsOf(c, minter)
	joined := d.notify.waiting(settings.OpenTimeout(c) + notifyMargin)
	defer joined()
	dial, durability, err := d.connect(ctx, c, openNATS, minter, revocations, log)
	if err != nil {
		return err
	}
	nc, err := dial()
	if err != nil {
		return err
	}
	d.onClose(nc.Close)
	if d.join {
		if err := awaitLog(ctx, nc, log); err != nil {
			return err
		}
	}
	joined()
	opening, cancel := context.WithTimeout(ctx, cmp.Or(d.openWithin, settings.OpenTimeout(c)))
	defer cancel()
	measured := newMetrics(c.Metrics.Enabled)
	var folds *foldsjs.Folds
	store, err := jetstream.Open(opening, nc, &jetstream.Options{
		Partitions: c.NATS.Partitions, Replicas: c.NATS.Replicas, Durability: durability, Refuses: d.refuses, Metrics: measured.log,
		Grow: settings.GrowsAtStart(c), Server: d.server, Beside: foldsjs.Place,
		Forget: func(ctx context.Context, session string) error {
			if revocations != nil { // otherwise they would be rights to the next session of the id
				if err := revocations.Revoke(ctx, session); err != nil {
					return err
				}
			}
			return folds.Erase(ctx, session)
		},
	})
	if err != nil {
		return err
	}
	d.onClose(func() { store.Close() })
	if revocations != nil {
		if err := revocations.Open(opening, nc, c.NATS.Replicas, d.dropRevoked, d.sync, log); err != nil {
			return err
		}
		d.onClose(revocations.Close)
	}
	d.Info = store.Info()
	switch d.Info.Durability {
	case eventlog.DurabilityUnknown, eventlog.DurabilityMemory:
		log.Warn("durability is "+string(d.Info.Durability)+": "+d.Info.Durability.Survives(), "backend", d.Info.Backend)
	}
	folds, err = foldsjs.Open(opening, nc, store, c.NATS.Replicas)
	if err != nil {
		return err
	}
	for _, fill := range d.fill {
		fill(opening, store)
	}
	states := snapshot.New(store, &snapshot.StoreOptions{Folds: folds, Logger: log, Metrics: measured.folds})
	d.openReadModels(c, store, states, log)
	limits := quota.New(settings.Tenants(c), d.counts(), daily.New(nc, c.NATS.Replicas, d.sync))
	d.openMemories(c.Memory, store, measured.memory, log)
	d.onClose(measured.state.watch(watched{config: c, log: store, models: d.models, limits: limits}))
	node := "node-" + ulid.Make().String()
	between, err := dial() // so that messages between nodes don't wait for the log's traffic
	if err != nil {
		return err
	}
	d.onClose(between.Close)
	runs, err := worklist.Open(opening, between, worklist.Options{Node: node, Replicas: c.NATS.Replicas, Logger: log, Metrics: measured.worklist})
	if err != nil {
		return err
	}
	d.onClose(runs.Close)
	tracer, err := d.openTracing(opening, c.Tracing, c.ServiceName, node, log)
	if err != nil {
		return err
	}
	workspaces, err := openWorkspaces(opening, c, agents, nc, d.Info, log)
	if err != nil {
		return err
	}
	mcp := agentconfig.NewMCPServers(log)
	extended := d.notify.waiting(notifyMargin)
	agents, servers, err := mcp.Open(ctx, c, agents) // each has its own time limit
	extended()
	if err != nil {
		return err
	}
	mcp.Use(servers, nil)
	d.onClose(mcp.Close)
	if err := agentconfig.Equip(d.memories, c, agents); err != nil {
		return err
	}
	loop, err := engine.New(store, agents, &engine.Options{
		Node: node, Logger: log, States: states, Worklist: runs, RetryDelay: c.ModelRetryDelay, ExpireAfter: c.Sessions.ExpireAfter,
		Tracer: tracer, TraceContent: c.Tracing.Content, Metrics: measured.loop, Workspaces: workspaces, Quota: limits,
	})
	if err != nil {
		return agentconfig.AtKey(c, err, workspaces)
	}
	d.onClose(loop.Stop)
	d.reloader = &reloader{
		started: c, mcp: mcp, loop: loop, runs: runs, models: d.models, memories: d.memories, workspaces: workspaces, quota: limits, log: log, store: store,
	}
	d.reloader.ctx, d.reloader.cancel = context.WithCancel(context.Background())
	d.onClose(d.reloader.close)
	opts := serverOptions(c, agents)
	opts.Log, opts.Loop, opts.States, opts.Logger, opts.Memories = store, loop, states, log, d.memories
	opts.ReadModels, opts.Reload = d.readModels(), d.reloader.reload
	opts.Unsubscribe = unsubscribing(revocations)
	opts.Subscribe = subscribing(minter, revocations, c.NATS.Subscribers, d.NATSURL, d.webSocketURL)
	opts.Gatherer, opts.Metrics, opts.Degraded = measured.gatherer, measured.http, measured.state.Degraded
	opts.Beside = beside.Of(nc, store)
	opts.Quota, opts.MaxStreams = limits, c.Limits.MostStreams(mostConnections(c.Limits))
	if d.reloader.auth, err = settings.AuthenticationOf(c.Auth, settings.Authentication{}); err != nil {
		return err
	}
	opts.Auth, opts.Identify = d.reloader.auth.Auth, d.reloader.auth.Identify
	if !c.Auth.TicketKey.IsZero() {
		opts.TicketKey = []byte(c.Auth.TicketKey.Reveal())
	}
	api, err := httpapi.New(opts)
	if err != nil {
		return err
	}
	d.reloader.api = api
	d.onClose(func() { api.Close() })
	d.onClose(func() { d.starter.shutdown(func() { api.Close() }) }) // streams would never end by themselves
	d.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.DrainTimeout)
		defer cancel()
		d.starter.leave()
		runs.Leave()
		loop.Drain(ctx)
	})
	d.URL = settings.Scheme(c) + listener.Addr().String()
	if err := runs.Serve(loop); err != nil {
		return err
	}
	d.onClose(startSchedule(upkeep(c, store, loop, states, d.readModels(), d.memories, runs.First), runs.First, log))
	d.starter.open(d.certificates.withCertificates(withPProf(c.Debug, api)))
	d.starter.serve(listener)
	return nil
}

// ReadBy says how the configuration is read when the daemon reloads.
func (d *Daemon) ReadBy(read func() (*config.Config, []agentloop.Agent, error)) {
	d.reloader.readBy(read)
}

// serverOptions are the HTTP server's options that the configuration has.
func serverOptions(c *config.Config, agents []agentloop.Agent) httpapi.Options {
	return httpapi.Options{
		AllowUnauthenticated: c.Auth.AllowUnauthenticated, Version: version.Current(), ServiceName: c.ServiceName, Origins: c.CORS.Origins,
		Chat: settings.Chat(c.Chat, agents), Protocols: settings.Protocols(c.Protocols), Prices: settings.Prices(c.Prices), Heartbeat: c.Heartbeat, Hosts: settings.Hosts(c), Public: c.Public,
		InterruptObservationDeadline: c.InterruptObservationDeadline, VerboseValidationErrors: c.VerboseValidationErrors,
		SubmitToolResultSchema: c.SubmitToolResultSchema, AccessLog: c.Log.Requests,
	}
}

func (d *Daemon) onClose(f func()) { d.closers = append(d.closers, f) }

// close stops everything: first what takes work, last the store.
func (d *Daemon) close() {
	for i := len(d.closers) - 1; i >= 0; i-- {
		d.closers[i]()
	}
	d.closers = nil
}

// Run serves until ctx ends. It reloads at each hangup; nil: never.
func (d *Daemon) Run(ctx context.Context, hangups <-chan os.Signal) error {
	ended := make(chan error, 1)
	go func() { ended <- d.starter.wait() }()
	for {
		select {
		case <-hangups:
			d.hangup(ctx)
		case err := <-ended:
			d.close()
			return err
		case <-ctx.Done():
			d.close()
			return <-ended
		}
	}
}

// hangup reloads; what is wrong is logged.
func (d *Daemon) hangup(ctx context.Context) {
	d.notify.reloading()
	defer d.notify.reloaded(d.URL)
	_, _ = d.reloader.reload(ctx)
}
