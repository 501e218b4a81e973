package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"

	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

type restoreCmd struct {
	File     string `arg:"" help:"What helixd backup has written." type:"path"`
	DataDir  string `help:"Data folder of a daemon, without any data." type:"path" xor:"where"`
	NATS     string `name:"nats" help:"URL of a NATS deployment without any of helixd's streams." xor:"where"`
	Config   string `help:"Configuration file of the daemon to restore: its data folder or its NATS deployment." type:"path" xor:"where"`
	JSON     bool   `help:"Print JSON."`
	Replicas int    `help:"Replicas of the streams, with --nats." default:"1"`
}

// backedUp is what backup and restore print.
type backedUp struct {
	File      string    `json:"file"`
	CreatedAt time.Time `json:"createdAt"`
	backup.Summary
	// Working is how many trees a restored daemon continues: they have an open
	// turn, which may wait for a person.
	Working *int `json:"working,omitempty"`
}

func (b backedUp) words() string {
	words := fmt.Sprintf("%s: %s, %s, %s of content, as of %s", b.File, terminal.Count(b.Sessions, "session"),
		terminal.Count(b.Records, "record"), terminal.Bytes(b.Bytes), terminal.Clock(b.CreatedAt.UnixMilli()))
	if b.Working != nil {
		words += fmt.Sprintf("; a daemon continues %d", *b.Working)
	}
	return terminal.Printable(words)
}

// Run reads the file to its end before anything is written. A restore that
// breaks off leaves a deployment that no daemon starts on.
func (c restoreCmd) Run(p *flags.Process) error {
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	shown := terminal.NewProgress(p.Stderr, "check", terminal.Size(file), terminal.Bytes)
	header, _, err := backup.Read(p.Ctx, shown.Reader(file), backup.Visitor{})
	shown.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, err := c.open(p)
	if err != nil {
		return err
	}
	defer r.close()
	shown = terminal.NewProgress(p.Stderr, "restore", terminal.Size(file), terminal.Bytes)
	done, working, err := r.restore(eventlog.WithActor(p.Ctx, operator()), shown.Reader(file))
	shown.Close()
	if errors.Is(err, restore.ErrNotEmpty) {
		return fmt.Errorf("%w: a backup is restored into an empty one", err)
	}
	if err != nil {
		return fmt.Errorf("not restored; remove what is there before you try again: %w", err)
	}
	result := backedUp{File: c.File, CreatedAt: header.CreatedAt, Summary: done, Working: &working}
	return terminal.Result(p.Stdout, c.JSON, result, result.words())
}

// operator is the user of the operating system that runs this command.
func operator() eventlog.Actor {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return eventlog.Actor{Subject: "os:" + name}
}

// restoring is where a backup goes.
type restoring struct {
	nc       *nats.Conn
	replicas int
	closers  []func()
}

func (r *restoring) close() {
	for i := len(r.closers) - 1; i >= 0; i-- {
		r.closers[i]()
	}
}

func (c restoreCmd) open(p *flags.Process) (*restoring, error) {
	dataDir, url, opts := c.DataDir, c.NATS, []nats.Option{nats.Name("helixd")}
	replicas := c.Replicas
	if c.Config != "" {
		from, err := config.Load(c.Config, os.LookupEnv)
		if err == nil {
			err = from.Validate()
		}
		if err != nil {
			return nil, err
		}
		dataDir, url, replicas = from.DataDir, from.NATS.URL, from.NATS.Replicas
		switch {
		case url != "":
			dataDir = ""
			if opts, err = settings.NATSOptions(from.NATS); err != nil {
				return nil, err
			}
		case from.NATS.Cluster.Listen != "":
			return nil, errors.New("servers that form a cluster can't be restored into directly: a stream belongs to all of them. " +
				"Restore into a separate data folder and serve that as one node, or into a NATS deployment outside of helixd")
		}
	}
	switch {
	case url != "":
		nc, err := nats.Connect(url, opts...)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		return &restoring{nc: nc, replicas: replicas, closers: []func(){nc.Close}}, nil
	case dataDir == "":
		return nil, errors.New("--data-dir, --nats or --config is needed: where to restore to")
	case replicas > 1:
		return nil, errors.New("--replicas: one embedded server keeps one")
	}
	// Stop has everything reach the disk.
	srv, err := embed.Start(p.Ctx, embed.Options{DataDir: filepath.Join(dataDir, "jetstream"), SyncInterval: time.Minute, Logger: p.Log})
	if err != nil {
		return nil, err
	}
	nc, err := srv.Connect()
	if err != nil {
		srv.Stop()
		return nil, err
	}
	return &restoring{nc: nc, replicas: 1, closers: []func(){srv.Stop, nc.Close}}, nil
}

// restore writes everything, and puts the trees that may have work on the list
// from which daemons take them up.
func (r *restoring) restore(ctx context.Context, in io.Reader) (done backup.Summary, working int, err error) {
	var to *restore.Restorer
	var runs *worklist.Worklist
	defer func() {
		if runs != nil {
			runs.Close()
		}
		if to != nil {
			to.Close()
		}
	}()
	done, err = backup.Restore(ctx, in, func(h backup.Header) (t backup.Target, err error) {
		if to, err = restore.Begin(ctx, r.nc, restore.Options{Ends: h.Ends, Placement: h.Placement, Replicas: r.replicas, Backup: h.CreatedAt}); err != nil {
			return t, err
		}
		folds, err := foldsjs.Open(ctx, r.nc, to, r.replicas)
		if err != nil {
			return t, err
		}
		if runs, err = worklist.Open(ctx, r.nc, worklist.Options{Node: "restore-" + ulid.Make().String(), Replicas: r.replicas}); err != nil {
			return t, err
		}
		return backup.Target{Sessions: to, Folds: folds, Work: func(agentType, session string) error {
			working++
			_, err := runs.Announce(ctx, agentType, session)
			return err
		}}, nil
	})
	if err == nil {
		err = to.Finish(ctx)
	}
	return done, working, err
}
