package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// configFlags are the flags that beat the file and the environment.
type configFlags struct {
	Config     string  `help:"Configuration file (helix.yaml)." type:"path"`
	Listen     *string `help:"Address of the HTTP server."`
	DataDir    *string `help:"Folder of the embedded server's data."`
	Durability *string `help:"fsync or interval=DURATION, of the embedded server."`
	NATSURL    *string `name:"nats-url" help:"Existing NATS deployment to use; empty: embedded."`
	NATSListen *string `name:"nats-listen" help:"Address on which the embedded server takes NATS clients."`
}

// load reads the configuration and sets the flags that were given.
func (f configFlags) load() (*config.Config, error) {
	c, err := config.Load(f.Config, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	for _, flag := range []struct {
		name, key string
		value     *string
	}{
		{"--listen", "listen", f.Listen},
		{"--data-dir", "dataDir", f.DataDir},
		{"--durability", "durability", f.Durability},
		{"--nats-url", "nats.url", f.NATSURL},
		{"--nats-listen", "nats.listen", f.NATSListen},
	} {
		if flag.value == nil {
			continue
		}
		if err := c.SetFrom(flag.name, flag.key, *flag.value); err != nil {
			return nil, err
		}
	}
	return c, c.Validate()
}

type serveCmd struct {
	configFlags
	AllowUnauthenticated bool `help:"Run without authentication; on a loopback address only."`
	ForceUnauthenticated bool `help:"Run without authentication, and take NATS clients without credentials, on any address."`
}

func (s serveCmd) Run(p *process) error {
	c, err := s.load()
	if err != nil {
		return err
	}
	c.Auth.AllowUnauthenticated = c.Auth.AllowUnauthenticated || s.AllowUnauthenticated || s.ForceUnauthenticated
	if !c.Auth.Configured() {
		switch {
		case !c.Auth.AllowUnauthenticated:
			return errors.New("nobody could use this: set auth.tokens or auth.jwt, or auth.allowUnauthenticated to run without")
		case !isLoopback(c.Listen) && !s.ForceUnauthenticated:
			return fmt.Errorf("listen: %s is not a loopback address: set auth.tokens or auth.jwt, or give --force-unauthenticated", c.Listen)
		}
	}
	if err := checkListen(c, s.ForceUnauthenticated, p.log); err != nil {
		return err
	}
	agents, err := agentsOf(c)
	if err != nil {
		return err
	}
	d, err := startDaemon(p.ctx, c, agents, false, p.log)
	if err != nil {
		return err
	}
	p.log.Info("helixd is ready", "http", d.url, "nats", d.natsURL, "websocket", d.webSocketURL, "durability", string(d.info.Durability),
		"agents", len(agents), "version", version())
	return d.run(p.ctx)
}
