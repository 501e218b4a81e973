package operate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/snapshot/backup"
)

// clusterCommands are about a cluster of embedded servers.
type clusterCommands struct {
	Grow growCmd `cmd:"" help:"Move the data of a single node into a cluster of embedded servers, with every sequence as it was."`
}

type growCmd struct {
	From   string        `help:"Data folder of the single node." required:"" type:"path"`
	Config string        `help:"Configuration file of this node of the cluster. The other nodes run with helixd serve --join." required:"" type:"path"`
	Wait   time.Duration `help:"How long to wait until the single node is stopped." default:"10m"`
	Cancel bool          `help:"Remove the unfinished copy, so that the single node can start again."`
	JSON   bool          `help:"Print JSON."`
}

// moved is what the mark of a folder says after its first line.
type moved struct {
	ID string `json:"id"`
	// Log is when the cluster's log was created.
	Log time.Time `json:"log"`
	// to is the first line: where the data is.
	to string
}

// Run copies the single node's data, compares the copy with it, marks the folder, so that
// no daemon starts on it any more, and then has the cluster serve. If it breaks off before
// the mark, the single node may start again; after it, only the cluster may: the command
// finishes when it is repeated.
func (c growCmd) Run(p *flags.Process) error {
	to, err := config.Load(c.Config, os.LookupEnv)
	if err != nil {
		return err
	}
	if err := c.check(to); err != nil {
		return err
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	target, err := joinToFill(p, to, id)
	if err != nil {
		return err
	}
	defer target.close()
	target.unsigned = true
	g := &growing{growCmd: c, p: p, to: target, cluster: to.NATS.Cluster.Name, replicas: to.NATS.Replicas}
	if c.Cancel {
		return g.cancel()
	}
	return g.run()
}

func (c growCmd) folder() string { return settings.ServerFolder(c.From) }

// check refuses what would lose something, before anything is done.
func (c growCmd) check(to *config.Config) error {
	if to.NATS.URL != "" || to.NATS.Cluster.Listen == "" {
		return fmt.Errorf("%s: nats.cluster.listen: is needed: the file is for a node of the cluster", c.Config)
	}
	from, err := filepath.Abs(c.From)
	if err != nil {
		return err
	}
	if dir, err := filepath.Abs(to.DataDir); err != nil || dir == from {
		return errors.Join(err, fmt.Errorf("%s: dataDir: must be another folder than --from %s, which stays as it is", c.Config, c.From))
	}
	if _, err := os.Stat(filepath.Join(c.folder(), "jetstream")); err != nil {
		return fmt.Errorf("%s has no data of a single node: %w", c.From, err)
	}
	if is, err := exists(filepath.Join(from, settings.WorkspacesFolder)); err != nil || !is {
		return err
	}
	dir := settings.LocalWorkspaces(to)
	if is, err := exists(dir); err != nil || is {
		return err
	}
	return fmt.Errorf("the single node has local workspaces, which belong to this machine: set workspaces.local.dir to %s in %s, or move that folder to %s",
		filepath.Join(from, settings.WorkspacesFolder), c.Config, dir)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// id identifies the copy of a folder. It stays with the folder, so that a copy that broke
// off is known again.
func (c growCmd) id() (string, error) {
	switch was, err := c.marked(); {
	case err != nil:
		return "", err
	case was != nil:
		return was.ID, nil
	}
	created, err := embed.Created(c.folder(), layout.LogStream(0))
	if err != nil {
		return "", fmt.Errorf("%s has no log of a single node: %w", c.From, err)
	}
	return "grow " + created.Format(time.RFC3339Nano), nil
}

// marked returns the mark of the folder, nil if it has none.
func (c growCmd) marked() (*moved, error) {
	text, err := embed.Moved(c.folder())
	if err != nil || text == nil {
		return nil, err
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	m := &moved{to: string(first)}
	if err := json.Unmarshal(rest, m); err != nil {
		return nil, fmt.Errorf("%s has moved, and not by this command: %w", c.From, err)
	}
	return m, nil
}

// growing is the work of a grow command.
type growing struct {
	growCmd
	p        *flags.Process
	to       *restoring
	cluster  string
	replicas int
}

func (g *growing) run() error {
	ctx := g.p.Ctx
	state, err := restore.Look(ctx, g.to.nc)
	if err != nil {
		return err
	}
	was, err := g.marked()
	switch {
	case err != nil:
		return err
	case was != nil && state.Log() && state.Created.Equal(was.Log):
		return terminal.Result(g.p.Stdout, g.JSON, notGrown{From: g.From, Cluster: g.cluster, Already: true},
			terminal.Printable(fmt.Sprintf("cluster %s has the data of %s already", g.cluster, g.From)))
	case g.copied(state, was):
		return g.finish(grownTo{From: g.From, Cluster: g.cluster})
	case was != nil:
		return g.elsewhere(was)
	case state.Log():
		return fmt.Errorf("%w: cluster %s has a log", restore.ErrNotEmpty, g.cluster)
	case state.Restoring == g.to.id:
		g.p.Log.Info("removing what a copy that broke off has left in the cluster")
		if err := restore.Discard(ctx, g.to.nc, g.to.id); err != nil {
			return err
		}
	case len(state.Streams) > 0:
		return fmt.Errorf("%w: cluster %s has a stream %s", restore.ErrNotEmpty, g.cluster, state.Streams[0])
	}
	from, stop, err := g.takeSource()
	if err != nil {
		return err
	}
	defer stop()
	switch was, err := g.marked(); {
	case err != nil:
		return err
	case was != nil: // this command, for another cluster, had the folder until now
		return g.elsewhere(was)
	}
	log, err := jetstream.Open(ctx, from, &jetstream.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer log.Close()
	done, err := g.copy(ctx, from, log)
	if err != nil {
		return fmt.Errorf("not moved: the single node may start again, and the same command begins again: %w", err)
	}
	return g.finish(done)
}

// copied reports whether all was copied into the cluster and compared, and only
// finishing is left.
func (g *growing) copied(state restore.State, was *moved) bool {
	return was != nil && state.Restoring == g.to.id && state.Created.Equal(was.Log)
}

// elsewhere says that another cluster has the data, and may serve it.
func (g *growing) elsewhere(was *moved) error {
	return fmt.Errorf("%w: %s: %s (the cluster of %s does not have it)", embed.ErrMoved, g.folder(), was.to, g.Config)
}

// cancel removes the mark of the folder, and then the unfinished copy: while the mark is
// there, only that copy may become the cluster's log.
func (g *growing) cancel() error {
	state, err := restore.Look(g.p.Ctx, g.to.nc)
	if err != nil {
		return err
	}
	was, err := g.marked()
	switch {
	case err != nil:
		return err
	case state.Log() && (was == nil || state.Created.Equal(was.Log)):
		return fmt.Errorf("cluster %s has a log, and may have records that %s lacks: to go back, restore a backup of the cluster into an empty folder", g.cluster, g.From)
	case g.copied(state, was):
		if err := embed.SetMoved(g.folder(), nil); err != nil {
			return err
		}
	case was != nil:
		return g.elsewhere(was)
	}
	if state.Restoring != "" {
		if err := restore.Discard(g.p.Ctx, g.to.nc, g.to.id); err != nil {
			return err
		}
	}
	return terminal.Result(g.p.Stdout, g.JSON, notGrown{From: g.From, Cluster: g.cluster, Cancelled: true},
		terminal.Printable("nothing has moved: the single node may start again on "+g.From))
}

// takeSource starts a server on the single node's folder when no daemon uses it any more.
func (g *growing) takeSource() (nc *nats.Conn, stop func(), err error) {
	o := embed.Options{DataDir: g.folder(), SyncInterval: time.Minute, KeepFormat: true, Logger: g.p.Log}
	srv, err := embed.Start(g.p.Ctx, o)
	if errors.Is(err, embed.ErrInUse) {
		g.p.Log.Info("the cluster is ready: stop the single node now", "dataDir", g.From)
		ctx, cancel := context.WithTimeoutCause(g.p.Ctx, g.Wait, fmt.Errorf("the single node was not stopped within %s", g.Wait))
		defer cancel()
		for errors.Is(err, embed.ErrInUse) {
			if serr := eventlog.Sleep(ctx, 50*time.Millisecond); serr != nil {
				return nil, nil, serr
			}
			srv, err = embed.Start(g.p.Ctx, o)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if nc, err = srv.Connect(); err != nil {
		srv.Stop()
		return nil, nil, err
	}
	return nc, func() { nc.Close(); srv.Stop() }, nil
}

// copy copies everything into the cluster and compares the copy.
func (g *growing) copy(ctx context.Context, from *nats.Conn, log *jetstream.Log) (done grownTo, err error) {
	g.p.Log.Info("copying: no node serves until this ends")
	began := time.Now()
	sums := &summing{of: map[string]sum{}}
	g.to.wrap = func(to backup.Sessions) backup.Sessions { sums.Sessions = to; return sums }
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, in := io.Pipe()
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		in.CloseWithError(take(ctx, from, log, in, 0))
	}()
	shown := terminal.NewProgress(g.p.Stderr, "copy", 0, terminal.Bytes)
	done = grownTo{From: g.From, Cluster: g.cluster}
	done.Summary, err = g.to.write(ctx, shown.Reader(out))
	shown.Close()
	out.CloseWithError(err)
	<-taken
	if err != nil {
		return done, err
	}
	done.Working, done.Copied = g.to.working, time.Since(began)
	began = time.Now()
	if err := g.compare(ctx, sums.of); err != nil {
		return done, err
	}
	done.Compared = time.Since(began)
	// The mark is on the disk at once, and then only the cluster may serve: so the copy has to
	// be there before it. The other servers sync as they are configured.
	if err := g.to.sync(ctx); err != nil {
		return done, err
	}
	return done, g.mark(ctx)
}

// compare reads back every record of the copy, and verifies the streams that have them.
func (g *growing) compare(ctx context.Context, sums map[string]sum) error {
	shown := terminal.NewProgress(g.p.Stderr, "compare", int64(len(sums)), terminal.Things("session"))
	defer shown.Close()
	together, ctx := errgroup.WithContext(ctx)
	together.SetLimit(atOnce)
	for session, want := range sums {
		shown.Add(1)
		together.Go(func() error {
			if err := g.compareSession(ctx, session, want); err != nil {
				return fmt.Errorf("session %q: the copy: %w", session, err)
			}
			return nil
		})
	}
	return together.Wait()
}

func (g *growing) compareSession(ctx context.Context, session string, want sum) error {
	got := newSum(want.floor)
	for r, err := range g.to.log.Read(ctx, session, want.floor) {
		if err != nil {
			return err
		}
		if err := got.add(r); err != nil {
			return err
		}
	}
	if got.n != want.n || !bytes.Equal(got.hash.Sum(nil), want.hash.Sum(nil)) {
		return fmt.Errorf("it has %d records, not the %d of the single node, or others", got.n, want.n)
	}
	var problem error
	err := g.to.log.Verify(ctx, session, func(f integrity.Finding) {
		if !f.Code.IsNote() {
			problem = errors.Join(problem, errors.New(findingLine(f)))
		}
	})
	return errors.Join(err, problem)
}

// mark has no daemon start on the single node's folder any more.
func (g *growing) mark(ctx context.Context) error {
	state, err := restore.Look(ctx, g.to.nc)
	if err != nil {
		return err
	}
	rest, err := json.Marshal(moved{ID: g.to.id, Log: state.Created})
	if err != nil {
		return err
	}
	first := fmt.Sprintf("cluster %s has it since %s (helixd cluster grow): start the nodes of the cluster", g.cluster, time.Now().UTC().Format(time.RFC3339))
	return embed.SetMoved(g.folder(), append([]byte(first+"\n"), rest...))
}

// finish has the nodes of the cluster serve.
func (g *growing) finish(done grownTo) error {
	if g.to.log == nil {
		if err := restore.Finish(g.p.Ctx, g.to.nc, g.to.id); err != nil {
			return err
		}
	} else if err := g.to.log.Finish(g.p.Ctx); err != nil {
		return fmt.Errorf("all was copied, and only the cluster may serve from now on: repeat the command: %w", err)
	}
	return terminal.Result(g.p.Stdout, g.JSON, done, done.words())
}

// sum is the sum of a session's records.
type sum struct {
	floor uint64
	n     int
	hash  hash.Hash
}

func newSum(floor uint64) sum { return sum{floor: floor, hash: sha256.New()} }

func (s *sum) add(r eventlog.Record) error {
	s.n++
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.hash.Write(append(text, '\n'))
	return nil
}

// summing sums up the records that are restored.
type summing struct {
	backup.Sessions
	mu sync.Mutex
	of map[string]sum
}

// Session implements backup.Sessions.
func (s *summing) Session(ctx context.Context, session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) (int, error) {
	total := newSum(floor)
	n, err := s.Sessions.Session(ctx, session, floor, func(yield func(eventlog.Copied, error) bool) {
		for c, err := range records {
			if err == nil {
				err = total.add(c.Record)
			}
			if !yield(c, err) {
				return
			}
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[session] = total
	return n, err
}
