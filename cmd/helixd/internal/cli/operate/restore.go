package operate

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/snapshot/backup"
)

type restoreCmd struct {
	File     string `arg:"" help:"What helixd backup has written." type:"path"`
	DataDir  string `help:"Data folder of a daemon, without any data." type:"path" xor:"where"`
	NATS     string `name:"nats" help:"URL of a NATS deployment without any of helixd's streams." xor:"where"`
	Config   string `help:"Configuration file of the daemon to restore: its data folder, its NATS deployment, or the cluster of embedded servers to which it belongs. The other nodes of the cluster then run with helixd serve --join." type:"path" xor:"where"`
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
	if b.Items > 0 {
		words += fmt.Sprintf(", and %s beside the log", terminal.Count(b.Items, "item"))
	}
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
	r, err := c.open(p, header)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.discard(p.Ctx); err != nil {
		return err
	}
	shown = terminal.NewProgress(p.Stderr, "restore", terminal.Size(file), terminal.Bytes)
	done, err := r.write(fact.WithActor(p.Ctx, operator()), shown.Reader(file))
	shown.Close()
	if err == nil {
		err = r.finish(p.Ctx)
	}
	if errors.Is(err, restore.ErrNotEmpty) {
		return fmt.Errorf("%w: a backup is restored into an empty one", err)
	}
	if err != nil && r.id != "" {
		return fmt.Errorf("not restored; the same command begins again: %w", err)
	}
	if err != nil {
		return fmt.Errorf("not restored; remove what is there before you try again: %w", err)
	}
	result := backedUp{File: c.File, CreatedAt: header.CreatedAt, Summary: done, Working: &r.working}
	return terminal.Result(p.Stdout, c.JSON, result, result.words())
}

// operator is the user of the operating system that runs this command.
func operator() fact.Actor {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return fact.Actor{Subject: "os:" + name}
}

func (c restoreCmd) open(p *flags.Process, header backup.Header) (*restoring, error) {
	dataDir, url, opts := c.DataDir, c.NATS, []nats.Option{nats.Name("helixd")}
	replicas := c.Replicas
	if c.Config != "" {
		from, err := config.Load(c.Config, os.LookupEnv)
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
			id, err := restoreID(header)
			if err != nil {
				return nil, err
			}
			return joinToFill(p, from, id)
		case replicas > 1:
			return nil, from.At("nats.replicas", errors.New("needs nats.url or nats.cluster.listen: one embedded server keeps one replica"))
		}
	}
	switch {
	case url != "":
		nc, err := nats.Connect(url, opts...)
		if err != nil {
			return nil, fmt.Errorf("nats: %w", err)
		}
		return &restoring{nc: nc, replicas: replicas, logger: p.Log, closers: []func(){nc.Close}}, nil
	case dataDir == "":
		return nil, errors.New("--data-dir, --nats or --config is needed: where to restore to")
	case replicas > 1:
		return nil, errors.New("--replicas: one embedded server keeps one")
	}
	// finish has everything reach the disk.
	return fill(p.Ctx, embed.Options{DataDir: settings.ServerFolder(dataDir), SyncInterval: time.Minute, Logger: p.Log}, 1)
}

// restoreID identifies the restore of a backup, so that it can begin again.
func restoreID(h backup.Header) (string, error) {
	text, err := json.Marshal(h)
	return fmt.Sprintf("restore %x", sha256.Sum256(text)), err
}
