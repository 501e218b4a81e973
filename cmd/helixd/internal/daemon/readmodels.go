package daemon

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/sqlite"
)

// openReadModels begins to keep the node's read models, if there are to be any.
func (d *Daemon) openReadModels(c *config.Config, feed eventlog.ChangeFeed, states sqlite.States, log *slog.Logger) {
	if !c.ReadModels.Enabled {
		return
	}
	d.models = sqlite.Open(feed, states, sqlite.Options{Path: settings.ReadModelsPath(c), Prices: settings.Prices(c.Prices), Logger: log})
	d.onClose(d.models.Close)
}

// How often the progress of a first build is looked at, and how long a build takes that is
// worth showing, at least.
const (
	buildEvery = 200 * time.Millisecond
	longBuild  = time.Second
)

// ShowBuild shows on w, if it is a terminal, how far the read models are while they are built
// from the log, as at a first start: until then listings lack sessions.
func (d *Daemon) ShowBuild(ctx context.Context, w io.Writer) {
	if d.models == nil || !terminal.IsTerminal(w) {
		return
	}
	go func() {
		var shown *terminal.Progress
		defer func() { shown.Close() }()
		for pause := longBuild; ; pause = buildEvery {
			if eventlog.Sleep(ctx, pause) != nil {
				return
			}
			now := d.models.Fresh(ctx)
			if !now.Rebuilding {
				return
			}
			if shown == nil {
				shown = terminal.NewProgress(w, "indexes", int64(now.Lag), terminal.Things("record"))
			}
			shown.Left(int64(now.Lag))
		}
	}()
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
