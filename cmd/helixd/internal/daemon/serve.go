package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/version"
)

type ServeCommand struct {
	flags.Configuration
	AllowUnauthenticated bool   `help:"Run without authentication; on a loopback address only."`
	ForceUnauthenticated bool   `help:"Run without authentication, and take NATS clients without credentials, on any address."`
	Join                 bool   `help:"Wait for a log that another node, helixd restore or helixd cluster grow creates, and create none."`
	Replace              string `help:"Remove a node from the cluster of embedded servers that is gone for good, by its nats.name, and take its place." placeholder:"NAME"`
}

func (s ServeCommand) Run(p *flags.Process) error {
	hangups := make(chan os.Signal, 1) // one that comes too early is heard later
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	c, agents, err := s.Configure(p)
	if err != nil {
		return err
	}
	notify, err := newNotifier(os.Getenv, p.Log)
	if err != nil {
		return err
	}
	defer notify.close()
	notify.starting(settings.OpenTimeout(c) + notifyMargin)
	settings.LimitMemory()
	d, err := (&Daemon{join: s.Join, replaces: s.Replace, notify: notify}).started(p.Ctx, c, agents, false, p.Log)
	if err != nil {
		return err
	}
	d.ReadBy(func() (*config.Config, []agentloop.Agent, error) { return s.reread(p.Logs) })
	p.Log.Info("helixd is ready", "http", d.URL, "nats", d.NATSURL, "websocket", d.webSocketURL, "durability", string(d.Info.Durability),
		"agents", len(agents), "version", version.Current())
	d.ShowBuild(p.Ctx, p.Stderr)
	notify.ready(d.URL)
	d.onClose(func() { notify.stopping(c.DrainTimeout + shutdownTimeout + notifyMargin) })
	return d.Run(p.Ctx, hangups)
}

// Configure reads the configuration, and refuses one that is not safe.
func (s ServeCommand) Configure(p *flags.Process) (*config.Config, []agentloop.Agent, error) {
	c, err := s.Load(p)
	if err != nil {
		return nil, nil, err
	}
	return s.checked(c, p.Log)
}

// reread is Configure while the daemon runs.
func (s ServeCommand) reread(logs flags.Log) (*config.Config, []agentloop.Agent, error) {
	c, err := s.Read(logs)
	if err != nil {
		return nil, nil, err
	}
	return s.checked(c, slog.New(slog.DiscardHandler)) // it has warned at the start
}

func (s ServeCommand) checked(c *config.Config, log *slog.Logger) (*config.Config, []agentloop.Agent, error) {
	c.Auth.AllowUnauthenticated = c.Auth.AllowUnauthenticated || s.AllowUnauthenticated || s.ForceUnauthenticated
	if !c.Auth.Configured() {
		switch {
		case !c.Auth.AllowUnauthenticated:
			return nil, nil, errors.New("no caller could be authenticated: set auth.tokens or auth.jwt, or auth.allowUnauthenticated to run without")
		case !settings.IsLoopback(c.Listen) && !s.ForceUnauthenticated:
			return nil, nil, fmt.Errorf("listen: %s is not a loopback address: set auth.tokens or auth.jwt, or give --force-unauthenticated", c.Listen)
		}
	}
	if err := settings.CheckListen(c, s.ForceUnauthenticated, log); err != nil {
		return nil, nil, err
	}
	settings.WarnOfExposure(c, log)
	agents, err := agentconfig.Agents(c)
	return c, agents, err
}
