package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/daemon"
	"github.com/helixd/helixd/cmd/helixd/internal/demo"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
)

// devNATSListen is where dev takes NATS clients if the port is free.
const devNATSListen = "127.0.0.1:4222"

type devCmd struct {
	flags.Configuration
}

func (c devCmd) Run(p *flags.Process) error {
	cfg, err := c.Load(p)
	if err != nil {
		return err
	}
	cfg.EnableProtocols()
	var agents []agentloop.Agent
	var fill []func(context.Context, eventlog.Log)
	if c.Config != "" {
		if agents, err = agentconfig.Agents(cfg); err != nil {
			return err
		}
	} else {
		agents, cfg.DrainTimeout = demo.Agents(), 0 // dev stops at once
		if cfg.Chat.DefaultAgent == "" {
			cfg.Chat.DefaultAgent = demo.Agent
		}
		if cfg.NATS.URL == "" { // otherwise the log is an existing deployment's
			fill = append(fill, func(ctx context.Context, log eventlog.Log) {
				if err := demo.ImportIncident(ctx, log, cfg.DataDir); err != nil {
					p.Log.Warn("the demo session can't be imported", eventlog.LogSession, demo.Incident, "error", err)
				}
			})
		}
	}
	if !cfg.Auth.Configured() {
		if !settings.IsLoopback(cfg.Listen) {
			return fmt.Errorf("listen: dev runs unauthenticated, on a loopback address only, not on %s", cfg.Listen)
		}
		cfg.Auth.AllowUnauthenticated = true
	}
	if cfg.NATS.URL == "" && cfg.NATS.Listen == "" && isFree(devNATSListen) {
		cfg.NATS.Listen = devNATSListen
	}
	if n := cfg.NATS; n.URL == "" && n.Listen != "" && !settings.IsLoopback(n.Listen) && n.User == "" {
		return fmt.Errorf("nats.listen: dev lets everybody read, on a loopback address only, not on %s", n.Listen)
	}
	if err := settings.CheckListen(cfg, false, p.Log); err != nil {
		return err
	}
	d, err := daemon.Start(p.Ctx, cfg, agents, true, p.Log, fill...)
	if err != nil {
		return err
	}
	if c.Config != "" {
		d.ReadBy(func() (*config.Config, []agentloop.Agent, error) {
			next, err := c.Read(p.Logs)
			if err != nil {
				return nil, nil, err
			}
			next.EnableProtocols()
			next.Auth.AllowUnauthenticated, next.NATS.Listen = cfg.Auth.AllowUnauthenticated, cfg.NATS.Listen
			agents, err := agentconfig.Agents(next)
			return next, agents, err
		})
	}
	agent := demo.Story
	if len(agents) > 0 && c.Config != "" {
		agent = agents[0].Name
	}
	fmt.Fprint(p.Stdout, welcome(d, cfg.DataDir, agent))
	d.ShowBuild(p.Ctx, p.Stderr)
	return d.Run(p.Ctx, nil)
}

func isFree(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// invocation is how a shell starts this program again, from the same folder.
func invocation() string {
	self, err := os.Executable()
	if err != nil {
		return terminal.Word(os.Args[0])
	}
	if strings.Contains(filepath.ToSlash(self), "/go-build") { // go run removes it afterwards
		if _, err := os.Stat("cmd/helixd"); err == nil {
			return "go run ./cmd/helixd"
		}
		return "go run github.com/helixd/helixd/cmd/helixd"
	}
	found, err := exec.LookPath("helixd")
	if err == nil {
		if found, err = filepath.EvalSymlinks(found); err == nil && found == self {
			return "helixd"
		}
	}
	return terminal.Word(os.Args[0])
}

// welcome says what to do next.
func welcome(d *daemon.Daemon, dataDir, agent string) string {
	session := fmt.Sprintf("demo-%d", time.Now().Unix())
	server := ""
	if d.URL != source.DefaultServer {
		server = " --server " + d.URL
	}
	text := fmt.Sprintf(`helixd is ready at %[1]s   (data in %[2]s, durability %[3]s)

Run the agent %[4]q, or talk to it:

  %[6]s run %[4]s 'Tell me a story.' --session %[5]s%[7]s
  %[6]s chat %[4]s%[7]s

In the middle of a sentence, kill this daemon from another terminal, and start it again: the run continues, and so does its reader.

  kill -9 %[8]d

The same with curl: start a run, and stream it from its start or, with &fromSequence=N, after N:

  curl -s %[1]s/start -d '{"sessionId":"%[5]s-curl","agentType":"%[4]s","message":"Tell me a story."}'
  curl -N '%[1]s/sse?sessionId=%[5]s-curl'

See all sessions in a browser, live and at any point of their past:

  %[1]s

Or in a terminal:

  %[6]s sessions%[7]s
`, d.URL, dataDir, d.Info.Durability, agent, session, invocation(), server, os.Getpid())
	if d.NATSURL != "" {
		text += fmt.Sprintf("  nats --server %s sub 'helix.live.>'\n", d.NATSURL)
	}
	return text + "\n"
}
