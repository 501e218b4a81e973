package flags

import (
	"errors"
	"os"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// Configuration are the flags that name the configuration file, and those that beat
// the file and the environment.
type Configuration struct {
	Config     string  `help:"Configuration file (helix.yaml)." type:"path"`
	Listen     *string `help:"Address of the HTTP server."`
	DataDir    *string `help:"Folder of the embedded server's data."`
	Durability *string `help:"fsync or interval=DURATION, of the embedded server."`
	NATSURL    *string `name:"nats-url" help:"Existing NATS deployment to use; empty: embedded."`
	NATSListen *string `name:"nats-listen" help:"Address on which the embedded server takes NATS clients."`
}

// keyFlag is a flag that sets a key of the configuration, if it was given.
type keyFlag struct {
	name, key string
	value     *string
}

func setFlags(c *config.Config, flags []keyFlag) error {
	for _, f := range flags {
		if f.value == nil {
			continue
		}
		if err := c.SetFrom(f.name, f.key, *f.value); err != nil {
			return err
		}
	}
	return nil
}

// Load reads and validates the configuration. From then on the process logs as the
// configuration says.
func (f Configuration) Load(p *Process) (*config.Config, error) {
	c, err := f.Read(p.Logs)
	if err != nil {
		return nil, err
	}
	p.Log = NewLogger(p.Stderr, c.Log)
	return c, nil
}

// Read reads and validates the configuration, and does not change how the process logs.
func (f Configuration) Read(logs Log) (*config.Config, error) {
	c, err := config.Load(f.Config, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	err = errors.Join(logs.Set(c), setFlags(c, []keyFlag{
		{"--listen", "listen", f.Listen},
		{"--data-dir", "dataDir", f.DataDir},
		{"--durability", "durability", f.Durability},
		{"--nats-url", "nats.url", f.NATSURL},
		{"--nats-listen", "nats.listen", f.NATSListen},
	}))
	if err == nil {
		err = c.Validate()
	}
	return c, err
}
