package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog"
)

// devNATSListen is where dev takes NATS clients if the port is free.
const devNATSListen = "127.0.0.1:4222"

type devCmd struct {
	configFlags
}

func (c devCmd) Run(p *process) error {
	cfg, err := c.load(p)
	if err != nil {
		return err
	}
	var agents []agentloop.Agent
	var fill []func(context.Context, eventlog.Log)
	if c.Config != "" {
		if agents, err = agentsOf(cfg); err != nil {
			return err
		}
	} else {
		agents, cfg.DrainTimeout = demoAgents(), 0 // nobody waits for it
		if cfg.Chat.DefaultAgent == "" {
			cfg.Chat.DefaultAgent = demoAgent
		}
		if cfg.NATS.URL == "" { // else the log is somebody's
			fill = append(fill, func(ctx context.Context, log eventlog.Log) {
				if err := importIncident(ctx, log, cfg.DataDir); err != nil {
					p.log.Warn("the demo session can't be imported", eventlog.LogSession, incidentSession, "error", err)
				}
			})
		}
	}
	if !cfg.Auth.Configured() {
		if !isLoopback(cfg.Listen) {
			return fmt.Errorf("listen: dev runs unauthenticated, on a loopback address only, not on %s", cfg.Listen)
		}
		cfg.Auth.AllowUnauthenticated = true
	}
	if cfg.NATS.URL == "" && cfg.NATS.Listen == "" && isFree(devNATSListen) {
		cfg.NATS.Listen = devNATSListen
	}
	if n := cfg.NATS; n.URL == "" && n.Listen != "" && !isLoopback(n.Listen) && n.User == "" {
		return fmt.Errorf("nats.listen: dev lets everybody read, on a loopback address only, not on %s", n.Listen)
	}
	if err := checkListen(cfg, false, p.log); err != nil {
		return err
	}
	d, err := startDaemon(p.ctx, cfg, agents, true, p.log, fill...)
	if err != nil {
		return err
	}
	if c.Config != "" {
		d.reloader.readBy(func() (*config.Config, []agentloop.Agent, error) {
			next, err := c.read(p.logs)
			if err != nil {
				return nil, nil, err
			}
			next.Auth.AllowUnauthenticated, next.NATS.Listen = cfg.Auth.AllowUnauthenticated, cfg.NATS.Listen
			agents, err := agentsOf(next)
			return next, agents, err
		})
	}
	agent := demoAgent
	if len(agents) > 0 && c.Config != "" {
		agent = agents[0].Name
	}
	fmt.Fprint(p.stdout, welcome(d, cfg.DataDir, agent))
	return d.run(p.ctx, nil)
}

func isFree(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// welcome says what to do next.
func welcome(d *daemon, dataDir, agent string) string {
	session := fmt.Sprintf("demo-%d", time.Now().Unix())
	text := fmt.Sprintf(`helixd is ready at %[1]s   (data in %[2]s, durability %[3]s)

Start a run of the demo agent %[4]q:

  curl -s %[1]s/start -d '{"sessionId":"%[5]s","agentType":"%[4]s","message":"What is the weather like?"}'

Stream it, from the start or, with &fromSequence=N, from behind N:

  curl -N '%[1]s/sse?sessionId=%[5]s'

See it in a browser, as it goes on and at any moment of its past:

  %[1]s/#/%[5]s

Look at it:

  curl -s %[1]s/chat/%[5]s/snapshot
  go run ./cmd/helixd records %[5]s --server %[1]s
`, d.url, dataDir, d.info.Durability, agent, session)
	if d.natsURL != "" {
		text += fmt.Sprintf("  nats --server %s sub 'helix.live.>'\n", d.natsURL)
	}
	return text + "\n"
}
