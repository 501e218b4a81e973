package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

type verifyCmd struct {
	Sessions []string `arg:"" optional:"" name:"session" type:"session" help:"Session ids; without any, everything is verified."`
	NATS     string   `name:"nats" help:"URL of the NATS deployment whose streams are verified." env:"HELIX_NATS"`
	DataDir  string   `help:"Data folder of a daemon that is stopped: its files are checked too. Where they are damaged, the rest is copied to the folder for temporary files and verified there." type:"path"`
	Backup   string   `help:"A backup's file, in place of what is stored." type:"path"`
	JSON     bool     `help:"Print JSON."`
}

// Validate reports what is to be verified, if that is not said once.
func (c verifyCmd) Validate() error {
	switch {
	case c.Backup != "" && (len(c.Sessions) > 0 || c.DataDir != "" || c.NATS != ""):
		return errors.New("--backup is verified alone, and as a whole")
	case c.Backup == "" && c.DataDir == "" && c.NATS == "":
		return errors.New("--nats or --data-dir is needed, or --backup: the streams themselves are read, not a daemon")
	}
	return nil
}

// Run prints what is found as it is found, and a summary.
func (c verifyCmd) Run(p *flags.Process) error {
	out := &findings{w: terminal.JSON(p.Stdout), json: c.JSON}
	err := c.verify(p, out)
	if err != nil {
		// Not as a context's error: what was interrupted is not verified.
		err = fmt.Errorf("not verified to the end: %s", err.Error())
	}
	if err := errors.Join(err, out.close(err)); err != nil {
		return err
	}
	if out.problems > 0 {
		return flags.ErrDamage
	}
	return nil
}

func (c verifyCmd) verify(p *flags.Process, out *findings) error {
	switch {
	case c.Backup != "":
		return c.verifyBackup(p, out)
	case c.DataDir != "":
		return c.verifyFolder(p, out)
	}
	nc, err := nats.Connect(c.NATS, nats.Name("helixd"), nats.ErrorHandler(settings.IgnoreAsync))
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer nc.Close()
	return c.verifyStreams(p, nc, out)
}

// verifyBackup reads a backup to its end.
func (c verifyCmd) verifyBackup(p *flags.Process, out *findings) error {
	file, err := os.Open(c.Backup)
	if err != nil {
		return err
	}
	defer file.Close()
	out.shown = terminal.NewProgress(p.Stderr, "verify", terminal.Size(file), terminal.Bytes)
	_, done, err := backup.Verify(p.Ctx, out.shown.Reader(file), out.add)
	out.sessions, out.records = done.Sessions, done.Records
	return err
}

// verifyFolder looks at the files first, which changes nothing, and then reads
// what is in them through a server. If they are whole it runs on the folder
// itself and at most writes its index again. One that meets damage cuts it off,
// with what follows in the file: then it gets a copy without the damage.
func (c verifyCmd) verifyFolder(p *flags.Process, out *findings) error {
	dir := filepath.Join(c.DataDir, "jetstream")
	damaged, err := c.checkFiles(p.Ctx, dir, out)
	if err != nil {
		return err
	}
	if !damaged {
		return c.verifyThrough(p, dir, out)
	}
	copied, err := os.MkdirTemp("", "helixd-verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	if err := salvage(p.Ctx, dir, copied); err != nil {
		return err
	}
	if err := c.verifyThrough(p, copied, out); err != nil && p.Ctx.Err() == nil {
		out.add(integrity.Finding{
			Code: integrity.FoundStore, Detail: fmt.Sprintf("without what is damaged the sessions can't be read: %v", err),
		})
	}
	return context.Cause(p.Ctx)
}

// verifyThrough starts a server on a data folder.
func (c verifyCmd) verifyThrough(p *flags.Process, dir string, out *findings) error {
	srv, err := embed.Start(p.Ctx, embed.Options{DataDir: dir, SyncInterval: time.Minute, KeepFormat: true, Logger: p.Log})
	if err != nil {
		return err
	}
	defer srv.Stop()
	nc, err := srv.Connect(nats.ErrorHandler(settings.IgnoreAsync))
	if err != nil {
		return err
	}
	defer nc.Close()
	return c.verifyStreams(p, nc, out)
}

func (c verifyCmd) checkFiles(ctx context.Context, dir string, out *findings) (damaged bool, err error) {
	folder, err := embed.OpenFolder(dir)
	if _, newer := errors.AsType[*version.NewerError](err); err != nil && !newer && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: stop the daemon, or verify its streams with --nats", err)
	}
	if err != nil {
		return false, err
	}
	defer folder.Close()
	err = folder.Check(ctx, func(d embed.Damage) {
		damaged = true
		out.add(damageFound(d))
	})
	return damaged, err
}

func salvage(ctx context.Context, from, to string) error {
	folder, err := embed.OpenFolder(from)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Salvage(ctx, to)
}

// damageFound names the session and, in a log, the record.
func damageFound(d embed.Damage) integrity.Finding {
	f := integrity.Finding{Code: integrity.FoundBlock}
	if d.Torn {
		f.Code = integrity.FoundTornBlock
	}
	f.Session, _, _ = layout.SessionOf(d.Subject)
	if strings.HasPrefix(d.Subject, "helix.log.") {
		f.Sequence = d.Sequence
	}
	message := fmt.Sprintf("after message %d", d.After)
	if d.Before > 0 {
		message += fmt.Sprintf(" and before %d", d.Before)
	}
	if d.Sequence > 0 {
		message = fmt.Sprintf("message %d", d.Sequence)
	}
	f.Detail = fmt.Sprintf("%s of stream %s: %s (%s, %d bytes from %d on)", message, d.Stream, d.Reason, d.File, d.Bytes, d.Offset)
	return f
}

// verifyStreams reads everything through a server.
func (c verifyCmd) verifyStreams(p *flags.Process, nc *nats.Conn, out *findings) error {
	ctx := p.Ctx
	log, err := jetstream.Open(ctx, nc, &jetstream.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer log.Close()
	folds, err := foldsjs.OpenExisting(ctx, nc, log)
	if err != nil && !errors.Is(err, natsjs.ErrStreamNotFound) {
		return err
	}
	sessions, folded := c.Sessions, c.Sessions
	if len(sessions) == 0 {
		if sessions, err = log.VerifySubjects(ctx, out.add); err != nil {
			return err
		}
		if folds != nil {
			if folded, err = folds.Sessions(ctx); err != nil {
				return err
			}
		}
	}
	out.shown = terminal.NewProgress(p.Stderr, "verify", int64(len(sessions)+len(folded)), terminal.Things("session"))
	for _, session := range sessions {
		out.shown.Add(1)
		n, err := log.Verify(ctx, session, out.add)
		if err != nil {
			return fmt.Errorf("session %q: %w", session, err)
		}
		out.sessions++
		out.records += n
	}
	if folds != nil {
		states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
		for _, session := range folded {
			out.shown.Add(1)
			if out.erasing[session] {
				continue
			}
			if err := states.Verify(ctx, session, out.add); err != nil {
				return fmt.Errorf("session %q: %w", session, err)
			}
		}
	}
	return log.VerifyStreams(ctx, out.add)
}

// findings prints what is found: problems at once, notes at the end.
type findings struct {
	w                 io.Writer
	json              bool
	sessions, records int
	problems          int
	notes             []integrity.Finding
	erasing           map[string]bool // sessions
	err               error           // of w

	shown *terminal.Progress // how far it is
}

func (f *findings) add(found integrity.Finding) {
	if found.Code == integrity.FoundErasing {
		if f.erasing == nil {
			f.erasing = map[string]bool{}
		}
		f.erasing[found.Session] = true
	}
	if found.Code.IsNote() {
		f.notes = append(f.notes, found)
		return
	}
	f.problems++
	switch {
	case !f.json:
		f.print("%s\n", findingLine(found))
	case f.problems == 1:
		f.print(`{"problems":[%s`, jsonOf(found))
	default:
		f.print(",\n%s", jsonOf(found))
	}
}

// close prints the rest; failed says why there is no more of it.
func (f *findings) close(failed error) error {
	f.shown.Close()
	if !f.json {
		for _, n := range f.notes {
			f.print("note: %s\n", findingLine(n))
		}
		if failed == nil {
			f.print("%d sessions, %d records: %d problems, %d notes\n", f.sessions, f.records, f.problems, len(f.notes))
		}
		return f.err
	}
	if f.problems == 0 {
		f.print(`{"problems":[`)
	}
	rest := struct {
		Notes    []integrity.Finding `json:"notes"`
		Sessions int                 `json:"sessions"`
		Records  int                 `json:"records"`
		Error    string              `json:"error,omitempty"` // not verified to the end
	}{append([]integrity.Finding{}, f.notes...), f.sessions, f.records, ""}
	if failed != nil {
		rest.Error = failed.Error()
	}
	f.print("],%s\n", jsonOf(rest)[1:])
	return f.err
}

func (f *findings) print(format string, args ...any) {
	f.shown.Close()
	if _, err := fmt.Fprintf(f.w, format, args...); err != nil && f.err == nil {
		f.err = err
	}
}

func jsonOf(v any) []byte {
	b, _ := json.Marshal(v) // of strings and numbers
	return b
}

// findingLine is a finding in one line.
func findingLine(f integrity.Finding) string {
	where := ""
	if f.Session != "" {
		where = fmt.Sprintf(" session %q", f.Session)
	}
	if f.Sequence > 0 {
		where += fmt.Sprintf(" sequence %d", f.Sequence)
	}
	return fmt.Sprintf("%s%s: %s", f.Code, where, terminal.Printable(strings.ReplaceAll(f.Detail, "\n", "; ")))
}
