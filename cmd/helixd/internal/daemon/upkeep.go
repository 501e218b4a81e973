package daemon

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

// finishEvery is how often each node continues with the erasures that have not ended.
const finishEvery = 2 * time.Second

// ephemeralEvery is how often sessions are erased whose clients wanted nothing stored, and
// whose process has died before it could erase them.
const ephemeralEvery = 5 * time.Minute

// upkeep is what the configuration has one node do now and then.
func upkeep(c *config.Config, store *jetstream.Log, loop *engine.Loop, states *snapshot.Store, models readmodel.Models, memories *memory.Manager, lead func() bool) []job {
	retention := job{name: "retention", every: c.Retention.Every, run: func(ctx context.Context) ([]slog.Attr, error) {
		done, err := states.Retain(ctx, retentionOf(c.Retention))
		purged := uint64(0)
		for _, p := range done.Purged {
			purged += p.Records
		}
		return []slog.Attr{slog.Uint64("purged", purged), slog.Int("sessions", len(done.Dropped)), slog.Uint64("bytes", done.Bytes)}, err
	}}
	if c.Retention.MaxAge == 0 && c.Retention.MaxBytes == 0 {
		retention.every = 0
	}
	sweep := job{name: "sweep", every: c.Sessions.SweepEvery, run: func(ctx context.Context) ([]slog.Attr, error) {
		var o admin.SweepOptions
		if models != nil {
			o.Expiring = models.Expiring
		}
		done, err := loop.Admin.Sweep(ctx, o)
		return []slog.Attr{
			slog.Int("detected", done.Detected), slog.Int("marked", done.Marked), slog.Int("alreadyTerminal", done.AlreadyTerminal),
			slog.Int("snapshotsDeleted", done.SnapshotsDeleted), slog.Int("running", done.Running), slog.Int("errors", done.Errors),
		}, err
	}}
	ephemeral := job{name: "ephemeral", every: ephemeralEvery, run: func(ctx context.Context) ([]slog.Attr, error) {
		done, err := loop.Admin.Sweep(ctx, admin.SweepOptions{Expiring: models.Expiring, OnlyEphemeral: true})
		if done.Detected == 0 {
			return nil, err
		}
		return []slog.Attr{slog.Int("detected", done.Detected), slog.Int("errors", done.Errors)}, err
	}}
	if models == nil { // without them it would look at every session
		ephemeral.every = 0
	}
	embed := job{name: "memories", every: c.Memory.ProcessEvery, run: func(ctx context.Context) ([]slog.Attr, error) {
		done, err := memories.ProcessUnembedded(ctx)
		return []slog.Attr{slog.Int("found", done.Found), slog.Int("embedded", done.Embedded), slog.Int("failed", done.Failed)}, err
	}}
	if memories == nil || c.Memory.Embedder.Provider == "" {
		embed.every = 0
	}
	found := false
	finish := job{name: "erasures", every: finishEvery, eachNode: true, run: func(ctx context.Context) ([]slog.Attr, error) {
		if store.Info().RefusesErasure != "" { // the disk's watch reports that
			return nil, nil
		}
		leads := lead()
		if leads && !found {
			if err := store.FindErasures(ctx); err != nil {
				return nil, err
			}
			found = true
		}
		n, err := store.FinishErasures(ctx, leads)
		if errors.Is(err, eventlog.ErrUnavailable) { // so is the log for everybody
			return nil, nil
		}
		if n == 0 {
			return nil, err
		}
		return []slog.Attr{slog.Int("finished", n)}, err
	}}
	return []job{retention, sweep, ephemeral, embed, finish, tidying(loop)}
}

func retentionOf(r config.Retention) snapshot.Retention {
	return snapshot.Retention{
		Purge: r.MaxAge > 0, PurgeOlderThan: r.MaxAge, Drop: r.MaxAge > 0, DropOlderThan: r.MaxAge, MaxBytes: uint64(r.MaxBytes),
	}
}
