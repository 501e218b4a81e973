package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/beside"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// restoring is where a backup goes.
type restoring struct {
	nc       *nats.Conn
	replicas int
	id       string        // of the restore, which can begin again; empty: it can't
	patience time.Duration // for the streams to be created; 0: no limit
	unsigned bool          // no record says that sessions were restored
	// sync has everything reach the disk that this process's server stores; nil: it is an
	// outside deployment.
	sync    func(context.Context) error
	logger  *slog.Logger
	closers []func()

	log     *restore.Restorer // from write on
	working int               // trees that daemons continue
	wrap    func(backup.Sessions) backup.Sessions
}

func (r *restoring) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
}

// fill starts an embedded server to restore into.
func fill(ctx context.Context, o embed.Options, replicas int) (*restoring, error) {
	srv, err := embed.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	nc, err := srv.Connect()
	if err != nil {
		srv.Stop()
		return nil, err
	}
	return &restoring{nc: nc, sync: srv.SyncAll, replicas: replicas, logger: o.Logger, closers: []func(){srv.Stop, nc.Close}}, nil
}

// joinToFill starts a server of a cluster of embedded servers to restore into. It waits for
// the other servers.
func joinToFill(p *flags.Process, c *config.Config, id string) (*restoring, error) {
	p.Log.Info("joining the cluster; the other nodes have to run with helixd serve --join", "routes", c.NATS.Cluster.Routes)
	r, err := fill(p.Ctx, settings.FillingServer(c, p.Log), c.NATS.Replicas)
	if err != nil {
		return nil, err
	}
	r.id, r.patience = id, settings.OpenTimeout(c)
	return r, nil
}

// discard removes what an earlier restore of the same id has left.
func (r *restoring) discard(ctx context.Context) error {
	if r.id == "" {
		return nil
	}
	state, err := restore.Look(ctx, r.nc)
	if err == nil && state.Restoring == r.id {
		r.logger.Info("removing what a restore that broke off has left in the cluster")
		err = restore.Discard(ctx, r.nc, r.id)
	}
	return err
}

// finish has daemons use what was written, once it has reached the disk.
func (r *restoring) finish(ctx context.Context) error {
	if r.sync == nil {
		return r.log.Finish(ctx)
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	if err := r.log.Finish(ctx); err != nil {
		return err
	}
	return r.sync(ctx)
}

// write writes everything that a backup has, and puts the trees that may have work on the
// list from which daemons take them up. No daemon can use it until finish.
func (r *restoring) write(ctx context.Context, in io.Reader) (backup.Summary, error) {
	var runs *worklist.Worklist
	defer func() {
		if runs != nil {
			runs.Close()
		}
	}()
	together, failed := errgroup.WithContext(ctx)
	together.SetLimit(atOnce)
	var filler *beside.Filler
	done, err := backup.Restore(ctx, in, func(h backup.Header) (t backup.Target, err error) {
		open, cancel := ctx, func() {}
		if r.patience > 0 {
			open, cancel = context.WithTimeoutCause(ctx, r.patience, fmt.Errorf("the servers did not create the streams within %s", r.patience))
		}
		defer cancel()
		o := restore.Options{Ends: h.Ends, Placement: h.Placement, Replicas: r.replicas, Backup: h.CreatedAt, ID: r.id}
		if r.unsigned {
			o.Backup = time.Time{}
		}
		if r.log, err = restore.Begin(open, r.nc, o); err != nil {
			return t, err
		}
		r.closers = append(r.closers, func() { r.log.Close() })
		folds, err := foldsjs.Open(open, r.nc, r.log, r.replicas)
		if err != nil {
			return t, err
		}
		if runs, err = worklist.Open(open, r.nc, worklist.Options{Node: "restore-" + ulid.Make().String(), Replicas: r.replicas}); err != nil {
			return t, err
		}
		var sessions backup.Sessions = r.log
		if r.wrap != nil {
			sessions = r.wrap(sessions)
		}
		return backup.Target{Sessions: besideSessions{sessions, together, failed}, Folds: settling{folds, r.nc}, Work: func(agentType, session string) error {
			r.working++
			_, err := runs.Announce(ctx, agentType, session)
			return err
		}, Item: func(of string, item eventlog.CopiedItem) error {
			if filler == nil {
				if err := together.Wait(); err != nil { // the filler asks for them
					return err
				}
				filler = beside.NewFiller(r.nc, r.log, r.replicas, r.logger)
			}
			return filler.Fill(ctx, of, item)
		}}, nil
	})
	return done, errors.Join(err, together.Wait())
}

// settling is a store of folds that waits while a cluster elects a leader. A daemon does not
// wait, since it can fold the log; a restore would break off.
type settling struct {
	snapshot.Folds
	nc *nats.Conn
}

// Save implements snapshot.Folds.
func (s settling) Save(ctx context.Context, session string, fold snapshot.Saved) (size int, err error) {
	err = jetstream.Settle(ctx, s.nc, func(ctx context.Context) (err error) {
		size, err = s.Folds.Save(ctx, session, fold)
		return err
	})
	return size, err
}
