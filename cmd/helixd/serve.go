package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
)

type serveCmd struct {
	configFlags
	AllowUnauthenticated bool `help:"Run without authentication; on a loopback address only."`
	ForceUnauthenticated bool `help:"Run without authentication, and take NATS clients without credentials, on any address."`
}

func (s serveCmd) Run(p *process) error {
	hangups := make(chan os.Signal, 1) // one that comes too early is heard later
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	c, agents, err := s.configure(p)
	if err != nil {
		return err
	}
	notify, err := newNotifier(os.Getenv, p.log)
	if err != nil {
		return err
	}
	defer notify.close()
	notify.starting(openTimeout(c) + notifyMargin)
	limitMemory()
	d, err := startDaemon(p.ctx, c, agents, false, p.log)
	if err != nil {
		return err
	}
	d.reloader.readBy(func() (*config.Config, []agentloop.Agent, error) { return s.reread(p.logs) })
	p.log.Info("helixd is ready", "http", d.url, "nats", d.natsURL, "websocket", d.webSocketURL, "durability", string(d.info.Durability),
		"agents", len(agents), "version", version())
	d.notify = notify
	notify.ready(d.url)
	d.onClose(func() { notify.stopping(c.DrainTimeout + shutdownTimeout + notifyMargin) })
	return d.run(p.ctx, hangups)
}

// configure reads the configuration, and refuses one that is not safe.
func (s serveCmd) configure(p *process) (*config.Config, []agentloop.Agent, error) {
	c, err := s.load(p)
	if err != nil {
		return nil, nil, err
	}
	return s.checked(c, p.log)
}

// reread is configure while the daemon runs.
func (s serveCmd) reread(logs logFlags) (*config.Config, []agentloop.Agent, error) {
	c, err := s.read(logs)
	if err != nil {
		return nil, nil, err
	}
	return s.checked(c, slog.New(slog.DiscardHandler)) // it has warned at the start
}

func (s serveCmd) checked(c *config.Config, log *slog.Logger) (*config.Config, []agentloop.Agent, error) {
	c.Auth.AllowUnauthenticated = c.Auth.AllowUnauthenticated || s.AllowUnauthenticated || s.ForceUnauthenticated
	if !c.Auth.Configured() {
		switch {
		case !c.Auth.AllowUnauthenticated:
			return nil, nil, errors.New("nobody could use this: set auth.tokens or auth.jwt, or auth.allowUnauthenticated to run without")
		case !isLoopback(c.Listen) && !s.ForceUnauthenticated:
			return nil, nil, fmt.Errorf("listen: %s is not a loopback address: set auth.tokens or auth.jwt, or give --force-unauthenticated", c.Listen)
		}
	}
	if err := checkListen(c, s.ForceUnauthenticated, log); err != nil {
		return nil, nil, err
	}
	warnOfExposure(c, log)
	agents, err := agentsOf(c)
	return c, agents, err
}
