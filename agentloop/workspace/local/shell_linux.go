package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/workspace"
)

const (
	// maxLine bounds a command line: Linux takes arguments of 128 KiB.
	maxLine = 64 << 10
	// maxWritten is how much a command may write before it is ended: most of
	// it is not kept.
	maxWritten = 16 * workspace.MaxOutput
	// quotaEvery is how often the files are counted while a command runs.
	quotaEvery = time.Second
)

// Run implements workspace.Shell.
func (s *space) Run(ctx context.Context, c workspace.Command) (workspace.Outcome, error) {
	c.Dir = cmp.Or(c.Dir, ".")
	switch {
	case strings.TrimSpace(c.Line) == "":
		return workspace.Outcome{}, fmt.Errorf("the command is empty: %w", errBadCommand)
	case len(c.Line) > maxLine:
		return workspace.Outcome{}, fmt.Errorf("the command has %d bytes, %d are allowed: %w", len(c.Line), maxLine, errBadCommand)
	case strings.ContainsRune(c.Line, 0):
		return workspace.Outcome{}, fmt.Errorf("the command has a NUL: %w", errBadCommand)
	case len(c.Stdin) > workspace.MaxFile:
		return workspace.Outcome{}, fmt.Errorf("stdin: %w: %d bytes are allowed", workspace.ErrTooLarge, workspace.MaxFile)
	}
	release, err := s.use(ctx, c.Dir)
	if err != nil {
		return workspace.Outcome{}, err
	}
	defer release()
	if info, err := s.root.Stat(c.Dir); err != nil {
		return workspace.Outcome{}, s.wrong(c.Dir, err)
	} else if !info.IsDir() {
		return workspace.Outcome{}, fmt.Errorf("%s: %w", c.Dir, workspace.ErrNotFolder)
	}
	began, err := s.size(ctx)
	if err != nil {
		return workspace.Outcome{}, s.wrong(".", err)
	}
	if err := s.makePrivate(); err != nil {
		return workspace.Outcome{}, s.wrong(".", err)
	}
	temp := private + "/tmp-" + rand.Text()
	if _, err := s.makeFolders(temp); err != nil {
		return workspace.Outcome{}, s.wrong(".", err)
	}
	defer s.recount()
	defer s.removeAll(temp) //nolint:errcheck // what stays counts, and goes with the workspace
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.gone, func() { cancel(context.Cause(s.gone)) })()
	timeout := s.p.opts.Timeout
	if c.Timeout > 0 {
		timeout = min(timeout, c.Timeout)
	}
	most := max(s.p.opts.MaxBytes, began) // what has too much can be cleared
	over := func(ctx context.Context) bool {
		n, err := s.size(ctx)
		return err != nil || n > most // what can't be counted may be anything
	}
	return s.p.run(ctx, c.Stdin, timeout, over, job{
		Isolated: s.p.isolated, HostNetwork: c.HostNetwork, Line: c.Line, Files: s.p.files(s.session), Dir: c.Dir, Temp: temp,
	})
}

var errBadCommand = errors.New("the command is not valid")

// probe finds out how commands can be run here.
func (p *Provider) probe() (isolated bool, problem error) {
	p.unfiltered = filterProblem()
	err := errors.New("root of a namespace could undo its mounts")
	if p.user.uid != 0 {
		if err = p.tryCommand(true); err == nil {
			return true, nil
		}
	}
	p.unisolated = err
	if p.user.uid == os.Geteuid() && !p.opts.Unconfined {
		return false, fmt.Errorf("commands can't be confined: they would be this process's own user's, without namespaces: %w", err)
	}
	if err := p.tryCommand(false); err != nil {
		return false, fmt.Errorf("commands can't be run in %s: %w", p.dir, err)
	}
	return false, nil
}

// probeTimeout bounds the first command: the machine may be busy.
const probeTimeout = 30 * time.Second

// tryCommand runs a command in its own folder.
func (p *Provider) tryCommand(isolated bool) error {
	dir, err := os.MkdirTemp(p.dir, ".probe-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const temp = "tmp"
	name := filepath.Join(dir, temp)
	if err := errors.Join(os.Mkdir(name, 0o700), p.user.ownFolder(name), p.user.ownFolder(dir)); err != nil {
		return err
	}
	o, err := p.run(context.Background(), "", probeTimeout, nil, job{
		Isolated: isolated, Line: `cd "$HOME" && : >x && : >"$TMPDIR/x"`, Files: dir, Dir: ".", Temp: temp,
	})
	if err == nil && o.ExitCode != 0 {
		err = fmt.Errorf("a first command ended with %d %s: %s", o.ExitCode, o.Stopped, o.Stderr)
	}
	return err
}
