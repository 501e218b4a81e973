package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/sqlite"
)

// reloader gives a daemon the agents, tokens, prices, tenants and chat options of its
// configuration as that is now: all of them or, if anything is not valid, none.
type reloader struct {
	started  *config.Config // what the daemon was started with
	mcp      *agentconfig.MCPServers
	loop     *engine.Loop
	runs     *worklist.Worklist
	api      *httpapi.Server // before requests are taken
	models   *sqlite.Models  // nil: this node keeps none
	memories *memory.Manager // nil: there are none
	// workspaces are those that were opened when the daemon started.
	workspaces []workspace.Provider
	quota      *quota.Quota
	store      *jetstream.Log
	log        *slog.Logger

	grows  sync.WaitGroup // while the log grows
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex // one reload at a time
	auth settings.Authentication
	read func() (*config.Config, []agentloop.Agent, error)
}

// readBy says how the configuration is read; until then there is none.
func (r *reloader) readBy(read func() (*config.Config, []agentloop.Agent, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = read
}

// close ends a reload that is under way and a growth of the log, and refuses other reloads.
func (r *reloader) close() {
	r.cancel()
	r.readBy(nil)
	r.grows.Wait()
}

// reload is what SIGHUP and POST /admin/reload do. It takes as long as new MCP servers may take to
// start: each has its own time limit.
func (r *reloader) reload(ctx context.Context) (api.Reloaded, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	done, err := r.apply(ctx)
	if refused, is := errors.AsType[*httpapi.ReloadError](err); is {
		r.log.ErrorContext(ctx, "configuration refused: nothing has changed", "problems", refused.Problems)
	} else if err == nil {
		r.log.InfoContext(ctx, "configuration reloaded", "agents", done.Agents, "needsRestart", done.NeedsRestart)
	}
	return done, err
}

func (r *reloader) apply(ctx context.Context) (done api.Reloaded, err error) {
	if r.read == nil {
		return done, refusedReload(errors.New("the daemon has no configuration file, or is shutting down"))
	}
	c, agents, err := r.read()
	if err != nil {
		return done, refusedReload(err)
	}
	auth, err := settings.AuthenticationOf(c.Auth, r.auth)
	if err != nil {
		return done, refusedReload(err)
	}
	if c.Auth.Configured() != r.started.Auth.Configured() {
		return done, refusedReload(c.At("auth", errors.New("needs a restart to begin or end with authentication")))
	}
	if err := r.mayGrow(c); err != nil {
		return done, refusedReload(err)
	}
	agents, servers, err := r.mcp.Open(ctx, c, agents)
	if err != nil {
		return done, refusedReload(err)
	}
	err = errors.Join(hideMore(r.workspaces, c), agentconfig.Equip(r.memories, c, agents))
	var unused <-chan struct{}
	if err == nil {
		unused, err = r.loop.SetAgents(agents)
	}
	if err != nil {
		r.mcp.Release(servers)
		return done, refusedReload(agentconfig.AtKey(c, err, r.workspaces))
	}
	r.mcp.Use(servers, unused)
	if err := r.api.Reconfigure(auth.Auth, auth.Identify, settings.Chat(c.Chat, agents)); err != nil {
		return done, err
	}
	r.auth = auth
	if err := r.runs.Rehost(); err != nil { // they learn of it by this node's next announcement
		r.log.WarnContext(ctx, "can't announce this node's agents to the others", "error", err)
	}
	r.api.SetPrices(settings.Prices(c.Prices))
	r.quota.Set(settings.Tenants(c))
	if r.models != nil {
		r.models.SetPrices(settings.Prices(c.Prices))
	}
	r.grow(c.NATS.Partitions)
	done.Agents = r.loop.AgentTypes()
	done.NeedsRestart = slices.DeleteFunc(r.started.Differing(c), func(key string) bool {
		return reloadable(key) || key == "nats.partitions" && c.NATS.Partitions >= r.store.Partitions()
	})
	if done.NeedsRestart == nil {
		done.NeedsRestart = []string{}
	}
	return done, nil
}

// mayGrow refuses more partitions where other NATS clients place sessions.
func (r *reloader) mayGrow(c *config.Config) error {
	if c.NATS.Partitions > r.store.Partitions() && !settings.GrowsAtStart(r.started) {
		return c.At("nats.partitions", errors.New(jetstream.GrowAdvice))
	}
	return nil
}

// grow has the log get that many partitions, beside everything else.
func (r *reloader) grow(partitions int) {
	has := r.store.Partitions()
	if partitions <= has {
		return
	}
	r.log.Info("the log grows", "partitions", has, "to", partitions)
	r.grows.Go(func() {
		if err := r.store.Grow(r.ctx, partitions); err != nil {
			r.log.Error("the log did not grow: reload again to try again", "partitions", has, "to", partitions, "error", err)
			return
		}
		r.log.Info("the log has grown", "partitions", r.store.Partitions())
	})
}

// reloadable reports whether a reload takes over a key.
func reloadable(key string) bool {
	section, _, _ := strings.Cut(key, ".")
	return section == "agents" || section == "auth" && key != "auth.ticketKey" || section == "chat" || section == "prices" || section == "tenants"
}

// refusedReload lists problems, one a line.
func refusedReload(err error) error {
	return &httpapi.ReloadError{Problems: strings.Split(err.Error(), "\n")}
}
