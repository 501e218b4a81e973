package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

const (
	// loadTries is how often a session is folded again after an error that may pass,
	// before it counts as stuck.
	loadTries = 5
	loadPause = 100 * time.Millisecond
	// stuckFor is how long to wait until a stuck session is tried again.
	stuckFor = time.Minute
)

// load folds a tree up to its head, independent of the feed's position.
func (p *projection) load(ctx context.Context, f eventlog.Change) error {
	if time.Since(p.stuck[f.Session]) < stuckFor {
		return nil
	}
	if err := p.insist(ctx, f.Session); err != nil {
		return p.failed(f, err)
	}
	delete(p.stuck, f.Session)
	return nil
}

// retry folds one stuck session, if it is time: the cause may be gone without another
// record.
func (p *projection) retry(ctx context.Context) error {
	for root, since := range p.stuck {
		if time.Since(since) < stuckFor {
			continue
		}
		p.stuck[root] = time.Now()
		switch err := p.fetch(ctx, root); {
		case err == nil:
			delete(p.stuck, root)
		case errors.Is(err, eventlog.ErrSessionNotFound):
			p.remove(root)
		case errors.Is(err, errStore):
			return err
		case !p.begun: // it is listed already
			return nil
		}
		return p.commit()
	}
	return nil
}

// failed lists a tree that can't be folded as stuck. It returns an error if the log can't
// be read, since then nothing is known about the tree.
func (p *projection) failed(f eventlog.Change, err error) error {
	switch {
	case errors.Is(err, eventlog.ErrSessionNotFound):
		p.remove(f.Session)
		return nil
	case errors.Is(err, errAway), errors.Is(err, errStore):
		return err
	}
	p.park(f, err)
	return nil
}

var (
	// errAway: nothing can be read from the log now.
	errAway = errors.New("the log can't be read")
	// errStore: the failure is not about the records that were read, but about the file.
	errStore = errors.New("the read models can't be written")
)

// insist is fetch with retries for errors that may pass.
func (p *projection) insist(ctx context.Context, root string) error {
	for try := 1; ; try++ {
		err := p.fetch(ctx, root)
		_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
		switch {
		case err == nil, trimmed, errors.Is(err, eventlog.ErrSessionNotFound), errors.Is(err, eventlog.ErrDamaged), errors.Is(err, errPanic), errors.Is(err, errStore):
			return err
		case ctx.Err() != nil, errors.Is(err, eventlog.ErrUnavailable), errors.Is(err, eventlog.ErrClosed):
			return fmt.Errorf("%w: %w", errAway, err)
		case try == loadTries:
			return err
		}
		if err := eventlog.Sleep(ctx, time.Duration(try)*loadPause); err != nil {
			return fmt.Errorf("%w: %w", errAway, err)
		}
	}
}

// fetch applies all records that the log has of a tree or a memory scope.
func (p *projection) fetch(ctx context.Context, root string) error {
	if eventlog.IsMemoryLog(root) {
		return p.readMemories(ctx, root)
	}
	t, err := headOf(ctx, p.m.states, root)
	if err == nil {
		p.cache.put(root, t).dirty = true
	}
	return err
}

var errPanic = errors.New("the fold panics")

func headOf(ctx context.Context, states States, root string) (t *projector.Tree, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errPanic, r)
		}
	}()
	return states.Head(ctx, root)
}

// park lists a record on which its tree is stuck. The tree's rows stay as they are.
func (p *projection) park(f eventlog.Change, err error) {
	p.m.opts.Logger.Warn("a session's rows are stuck", eventlog.LogSession, f.Session, "sequence", f.Sequence, "error", err)
	p.cache.drop(f.Session)
	p.stuck[f.Session] = time.Now()
	p.parks = append(p.parks, park{root: f.Session, sequence: f.Sequence, typ: f.Type, reason: err.Error()})
}
