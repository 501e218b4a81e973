package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

const (
	// tidyEvery is how often each node looks for files of sessions that are
	// gone.
	tidyEvery = 10 * time.Minute
	// objectsTimeout bounds one request whether JetStream has workspaces, if none are configured.
	objectsTimeout = 2 * time.Second
)

// openWorkspaces opens the providers that agents use, and those that have
// files from before: of sessions that may be erased.
func openWorkspaces(ctx context.Context, c *config.Config, agents []agentloop.Agent, nc *nats.Conn, info eventlog.Info, log *slog.Logger) ([]workspace.Provider, error) {
	used := func(kind string) bool {
		return slices.ContainsFunc(agents, func(a agentloop.Agent) bool { return a.Workspace != nil && a.Workspace.Provider == kind })
	}
	providers := []workspace.Provider{inmemory.New(nil)}
	dir := settings.LocalWorkspaces(c)
	if _, err := os.Stat(dir); used(local.ID) || err == nil {
		o := settings.LocalOptions(c.Workspaces.Local)
		o.Hide = hiddenFiles(c)
		p, err := local.New(dir, o)
		if err != nil {
			return nil, err
		}
		if err := p.ShellProblem(); err != nil {
			log.Warn("local workspaces have no shell here", "error", err)
		}
		for _, gap := range p.Gaps() {
			log.Warn("local workspaces: " + gap)
		}
		providers = append(providers, p)
	}
	if used(objects.ID) || hasObjects(ctx, nc, log) {
		p, err := objects.Open(ctx, nc, &objects.Options{
			Replicas: c.NATS.Replicas, MaxBytes: int64(c.Workspaces.Objects.MaxBytes), Memory: info.Durability == eventlog.DurabilityMemory,
		})
		if err != nil {
			return nil, err
		}
		providers = append(providers, p)
	}
	return providers, nil
}

// hiddenFiles are the files and folders that agents' commands must not see.
func hiddenFiles(c *config.Config) []string {
	hide := append(c.SecretFiles(), c.DataDir)
	if models := c.ReadModels.File; models != "" {
		hide = append(hide, models, models+"-wal", models+"-shm")
	}
	return hide
}

// hideMore hides the secret files of a new configuration, too. Those of the old one
// stay hidden: runs keep the agents that they began with.
func hideMore(providers []workspace.Provider, c *config.Config) error {
	for _, p := range providers {
		if l, is := p.(*local.Provider); is {
			if err := l.AddHidden(c.SecretFiles()); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasObjects reports whether there are workspaces in JetStream. If servers have just started, it waits
// for their leader. A deployment that never had any need not permit the request.
func hasObjects(ctx context.Context, nc *nats.Conn, log *slog.Logger) bool {
	there := false
	err := jetstream.Settle(ctx, nc, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
		defer cancel()
		there, err = objects.Exists(ctx, nc)
		if last := nc.LastError(); err != nil && errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), objects.Stream) {
			return last
		}
		return err
	})
	if err != nil {
		log.Warn("can't find out whether there are workspaces in JetStream: if there are, erasures leave them", "error", err)
	}
	return there
}

// tidying has each node remove files that belong to no session any more.
func tidying(loop *engine.Loop) job {
	return job{name: "tidy", every: tidyEvery, eachNode: true, run: func(ctx context.Context) ([]slog.Attr, error) {
		done, err := loop.Admin.Tidy(ctx)
		if done == (admin.Tidied{}) {
			return nil, err
		}
		return []slog.Attr{slog.Int("trees", done.Trees), slog.Int("waiting", done.Waiting), slog.Int("errors", done.Errors)}, err
	}}
}
