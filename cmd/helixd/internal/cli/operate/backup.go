package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/beside"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

type backupCmd struct {
	source.ServerFlags
	Out   string       `help:"File to write. While it is written it has another name, .NAME.*.part." required:"" type:"path"`
	Rate  config.Bytes `help:"At most so much in a second, before it is compressed; at least 64KiB. Without it, as fast as it can." placeholder:"10MiB"`
	JSON  bool         `help:"Print JSON."`
	Force bool         `help:"Replace the file if there is one."`
}

// Run writes a backup of everything, reads it back, and prints what it holds.
// Nothing has the file's name but a whole backup that has reached the disk.
func (c backupCmd) Run(p *flags.Process) error {
	if err := backup.CheckRate(int64(c.Rate)); err != nil {
		return err
	}
	if err := c.free(); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(c.Out), "."+filepath.Base(c.Out)+".*.part")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	defer part.Close()
	if err := c.writeShown(p, part); err != nil {
		return err
	}
	if err := part.Sync(); err != nil {
		return err
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return err
	}
	shown := terminal.NewProgress(p.Stderr, "check", terminal.Size(part), terminal.Bytes)
	header, done, err := backup.Read(p.Ctx, shown.Reader(part), backup.Visitor{})
	shown.Close()
	if err != nil {
		return err
	}
	if err := c.publish(part.Name()); err != nil {
		return err
	}
	result := backedUp{File: c.Out, CreatedAt: header.CreatedAt, Summary: done}
	return terminal.Result(p.Stdout, c.JSON, result, result.words())
}

// writeShown writes the backup, and shows on a terminal how many records it has.
func (c backupCmd) writeShown(p *flags.Process, out io.Writer) error {
	shown := terminal.NewProgress(p.Stderr, "backup", 0, terminal.Things("record"))
	if shown == nil {
		return c.write(p, out)
	}
	read, followed := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		backup.Follow(read, shown.Set)
	}()
	err := c.write(p, io.MultiWriter(out, followed))
	followed.Close()
	<-ended
	shown.Close()
	return err
}

func (c backupCmd) write(p *flags.Process, out io.Writer) error {
	if c.NATS != "" {
		return c.fromNATS(p.Ctx, out)
	}
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Backup(p.Ctx, out, int64(c.Rate))
	if errors.Is(err, client.ErrStreamDropped) {
		return fmt.Errorf("the daemon did not send all of it, see its log: %w", err)
	}
	return source.Explained(err)
}

func (c backupCmd) fromNATS(ctx context.Context, out io.Writer) error {
	nc, err := nats.Connect(c.NATS, nats.Name("helixd"))
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer nc.Close()
	log, err := jetstream.Open(ctx, nc, &jetstream.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer log.Close()
	return take(ctx, nc, log, out, int64(c.Rate))
}

// take writes a backup of a deployment, with the log's saved folds if there are any. It stores
// nothing.
func take(ctx context.Context, nc *nats.Conn, log *jetstream.Log, out io.Writer, rate int64) error {
	o := snapshot.StoreOptions{ReadOnly: true}
	folds, err := foldsjs.OpenExisting(ctx, nc, log)
	switch {
	case err == nil:
		o.Folds = folds
	case !errors.Is(err, natsjs.ErrStreamNotFound):
		return err
	}
	_, err = backup.Take(ctx, log, snapshot.New(log, &o), out, backup.Options{Rate: rate, Helixd: version.Current(), Beside: beside.Of(nc, log)})
	return err
}

// free says whether the file's name may be taken.
func (c backupCmd) free() error {
	if c.Force {
		return nil
	}
	switch _, err := os.Lstat(c.Out); {
	case err == nil:
		return fmt.Errorf("%s exists: give --force to replace it", c.Out)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// publish gives a complete file its name. Without --force, it fails if another file
// has the name meanwhile.
func (c backupCmd) publish(part string) error {
	var err error
	if c.Force {
		err = os.Rename(part, c.Out)
	} else if err = os.Link(part, c.Out); err != nil && !errors.Is(err, fs.ErrExist) {
		if err = c.free(); err == nil { // a file system without links
			err = os.Rename(part, c.Out)
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(c.Out))
}

// syncFolder has the names in a folder reach the disk.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}
