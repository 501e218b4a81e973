package settings

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/embed"
)

// ClusterOf returns the cluster of an embedded server; nil: it is alone.
func ClusterOf(n config.NATS) *embed.Cluster {
	cl := n.Cluster
	if cl.Listen == "" {
		return nil
	}
	return &embed.Cluster{
		Name: cl.Name, Listen: cl.Listen, Routes: cl.Routes, User: cl.User, Password: cl.Password.Reveal(),
		TLS: embed.TLS(cl.TLS),
	}
}

// ServerFolder is where the embedded server of a daemon has its data.
func ServerFolder(dataDir string) string { return filepath.Join(dataDir, "jetstream") }

// FillingServer are the options of an embedded server that a command fills before a
// daemon serves: it takes no NATS clients. Everything reaches the disk when it stops, at
// the latest.
func FillingServer(c *config.Config, log *slog.Logger) embed.Options {
	return embed.Options{
		DataDir: ServerFolder(c.DataDir), SyncInterval: time.Minute, Name: c.NATS.Name, Cluster: ClusterOf(c.NATS), Logger: log,
	}
}
