package daemon

import (
	"log/slog"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/sqlite"
)

// openReadModels begins to keep the node's read models, if there are to be any.
func (d *Daemon) openReadModels(c *config.Config, feed eventlog.Feed, states sqlite.States, log *slog.Logger) {
	if !c.ReadModels.Enabled {
		return
	}
	d.models = sqlite.Open(feed, states, sqlite.Options{Path: settings.ReadModelsPath(c), Prices: settings.Prices(c.Prices), Logger: log})
	d.onClose(d.models.Close)
}

// readModels are the node's, or nil.
func (d *Daemon) readModels() readmodel.Models {
	if d.models == nil {
		return nil
	}
	return d.models
}

// counts returns the usage of tenants; nil: there are no read models.
func (d *Daemon) counts() quota.Counts {
	if d.models == nil {
		return nil
	}
	return d.models
}
