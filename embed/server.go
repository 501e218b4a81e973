package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/helixd/helixd/embed/internal/blocks"
	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/nats-io/nats.go"
)

// reconnectWait is the pause between two tries of a connection of Connect to
// reach a server that is restarted.
const reconnectWait = 50 * time.Millisecond

// Server is a running nats-server.
type Server struct {
	opts   Options // ports that were left to the system are filled in
	unlock func()
	stop   sync.Once
	disk   *disk      // nil: the disk is not watched
	group  *groupSync // nil: the server syncs by itself, or by interval only

	grouped bool // Options.groupSync
	staging *staging
	fsync   func(*os.File) error // of SyncAll

	scrubbing sync.Mutex // held while a block is overwritten
	stopped   bool       // guarded by scrubbing
	done      scrubs     // since the server was started

	mu  sync.RWMutex
	now *instance // changes when the server is restarted
}

// Start runs a server and returns when it takes connections. In a cluster that
// is when most of the servers run and have found each other: until ctx ends it
// waits for them, and logs that every 10 seconds. ctx bounds the start only. A folder of a
// later format is refused with a [version.NewerError] before anything in it changes.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	unlock, err := datadir.Lock(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	s := &Server{opts: Options{Logger: o.Logger}, unlock: unlock, staging: newStaging(o.DataDir), fsync: (*os.File).Sync}
	if err := s.begin(ctx, o); err != nil {
		s.Stop()
		return nil, err
	}
	s.grouped = o.groupSync()
	if s.grouped && o.SyncInterval == 0 {
		s.group = newGroupSync(o.DataDir)
	} else if why := o.ungrouped(); o.GroupSync && o.SyncInterval == 0 && o.Cluster == nil && why != "" {
		o.Logger.Info("the embedded server syncs each message by itself, which is slower than one sync for many", slog.String("reason", why))
	}
	if o.MinFree > 0 {
		s.disk = watchDisk(s)
	}
	return s, nil
}

func (s *Server) begin(ctx context.Context, o Options) error {
	if err := o.checkMoved(); err != nil {
		return err
	}
	older, err := checkFormat(o.DataDir)
	if err != nil {
		return err
	}
	name, fresh, err := o.identify()
	if err != nil {
		return err
	}
	o.Name = name
	if older && !o.KeepFormat {
		if err := noteFormat(o.DataDir); err != nil {
			return err
		}
	}
	if err := blocks.FinishErasing(o.DataDir); err != nil {
		return err
	}
	first, err := newInstance(o)
	if err != nil {
		return err
	}
	if fresh {
		if err := o.remember(); err != nil {
			return err
		}
	}
	s.now = first
	if err := first.start(ctx); err != nil {
		return err
	}
	s.opts = first.fixed()
	if o.Cluster != nil { // its batches are in memory anyway
		return nil
	}
	if err := s.finishBatches(ctx); err != nil {
		return fmt.Errorf("embed: batches of the last process: %w", err)
	}
	return nil
}

// restart begins the server again: a store that met a full disk writes no more.
// Connections of Connect come back by themselves.
func (s *Server) restart(ctx context.Context) error {
	s.scrubbing.Lock() // a server that starts takes a half overwritten record for damage
	defer s.scrubbing.Unlock()
	s.instance().end()
	if err := blocks.FinishErasing(s.opts.DataDir); err != nil {
		return err
	}
	next, err := newInstance(s.opts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.now = next
	s.mu.Unlock()
	if err := next.start(ctx); err != nil {
		return err
	}
	return s.staging.relink()
}

func (s *Server) instance() *instance {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.now
}

// Connect returns a connection through a pipe inside the process, which the
// caller closes. It may do everything.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	inside := []nats.Option{
		nats.InProcessServer(s), nats.UserInfo(userInside, s.opts.password), nats.ErrorHandler(s.instance().log.clientError),
		nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
		nats.Timeout(startTimeout), // nothing can get lost in a pipe
	}
	nc, err := nats.Connect("", append(inside, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embed: connect: %w", err)
	}
	return nc, nil
}

// InProcessConn implements nats.InProcessConnProvider, for the server that
// runs now.
func (s *Server) InProcessConn() (net.Conn, error) {
	i := s.instance()
	if !i.serves.Load() || !i.srv.Running() {
		return nil, errors.New("embed: the server does not run")
	}
	i.makeRoom()
	return i.srv.InProcessConn()
}

// ClientURL is the address for NATS clients from outside, empty without
// Options.Listen.
func (s *Server) ClientURL() string {
	if s.opts.Listen == "" {
		return ""
	}
	return s.instance().srv.ClientURL()
}

// Name is the server's name.
func (s *Server) Name() string { return s.opts.Name }

// GroupSync reports whether what the server has answered may still be lost with the
// machine's power until [Server.Sync] has returned, see Options.GroupSync. Then only this
// process writes the streams. With Options.SyncInterval Sync does not wait.
func (s *Server) GroupSync() bool { return s.grouped }

// MaxBatch is how many messages the server takes in one atomic batch.
func (s *Server) MaxBatch() int {
	if s.opts.Cluster == nil {
		return maxBatch
	}
	return clusterMaxBatch
}

// Sync returns when everything that the server had stored before the call is on the
// disk. Callers that wait at the same time share one sync. If the server syncs by
// itself, there is nothing to wait for. After an error other than ctx's nothing is
// known to be on the disk, and every later call fails too.
func (s *Server) Sync(ctx context.Context) error {
	if s.group == nil {
		return nil
	}
	return s.group.wait(ctx)
}

// SyncStreams returns when everything that some streams hold is on the disk, also what the
// server has removed, overwritten or rewritten before the call, and their settings. It costs
// a look at each block of them. A server that syncs by itself syncs messages only, so this has
// an effect there, too. Errors: as Sync.
func (s *Server) SyncStreams(ctx context.Context, streams ...string) error {
	if s.group == nil {
		g := newGroupSync(s.opts.DataDir)
		if err := g.syncStreams(ctx, streams); err != nil {
			return err
		}
		return g.syncOne(g.dir) // which names new streams
	}
	return s.group.syncStreams(ctx, streams)
}

// SyncAll returns when everything in the data folder is on the disk: also the logs by which
// the servers of a cluster agree, and settings. It opens each file of the folder.
func (s *Server) SyncAll(ctx context.Context) error {
	g := newGroupSync(s.opts.DataDir)
	g.sync = s.fsync
	return g.syncFolder(ctx, s.opts.DataDir)
}

// Interest returns how many subscriptions a message on a subject reaches, those of
// clients from outside included.
func (s *Server) Interest(subject string) int {
	account, err := s.instance().srv.LookupAccount(blocks.Account)
	if err != nil {
		return 0
	}
	return account.Interest(subject)
}

// Stop ends the server and waits until its data is on the disk. It is
// idempotent.
func (s *Server) Stop() {
	s.stop.Do(func() {
		if s.disk != nil {
			s.disk.end()
		}
		s.scrubbing.Lock()
		s.stopped = true
		s.scrubbing.Unlock()
		if i := s.instance(); i != nil {
			i.end()
		}
		if s.group == nil && s.opts.SyncInterval > 0 { // nats-server does not sync when it stops
			if err := s.SyncAll(context.Background()); err != nil {
				s.opts.Logger.Error("the last messages may not be on the disk", slog.Any("error", err))
			}
		}
		if s.group != nil {
			// Messages for which no caller has waited: with a sync of each message they would be there.
			if err := s.group.wait(context.Background()); err != nil {
				s.opts.Logger.Error("the last messages may not be on the disk", slog.Any("error", err))
			}
			s.group.stop()
		}
		if err := s.staging.end(); err != nil {
			s.opts.Logger.Warn("the folder for batches in memory can't be removed", slog.Any("error", err))
		}
		s.unlock()
	})
}
