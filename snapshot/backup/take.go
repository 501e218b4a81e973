package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
)

// Options of a backup; zero values mean the defaults.
type Options struct {
	// Rate bounds how many bytes of lines are written a second, before compression; 0: no
	// limit, else at least MinRate.
	Rate int64
	// Helixd is the version of the program, for the header.
	Helixd string
	// Time is the header's time; zero: now.
	Time time.Time
	// Beside is what else the backup has.
	Beside []Beside
}

// Take writes a backup of a log, and of those saved folds of states that it needs. The
// output is a backup only if it returns no error. Errors: ErrChanged, and the log's and
// the writer's.
func Take(ctx context.Context, log eventlog.Copier, states *snapshot.Store, out io.Writer, o Options) (Summary, error) {
	if err := CheckRate(o.Rate); err != nil {
		return Summary{}, err
	}
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	ends, placement, err := cut(ctx, log)
	if err != nil {
		return Summary{}, err
	}
	sealed := newSealWriter(out)
	packed, err := zstd.NewWriter(sealed, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	if err != nil {
		return Summary{}, fmt.Errorf("backup: %w", err)
	}
	t := &taking{ctx: ctx, log: log, states: states, ends: ends, pace: pace{rate: o.Rate}}
	t.lines = json.NewEncoder(pacedWriter{t, packed})
	t.lines.SetEscapeHTML(false) // keeps payloads byte for byte
	info := log.Info()
	info.Refuses, info.Partitions = "", len(ends)
	h := Header{Version: Version, Helixd: o.Helixd, CreatedAt: o.Time.UTC(), Log: info, Ends: ends, Placement: placement}
	if Version == 2 && h.Placement == nil {
		h.Version = unplaced
	}
	err = t.all(h)
	if err != nil {
		packed.Reset(io.Discard) // stop writing: the output is not a backup
	}
	if cerr := packed.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = t.items(sealed, o.Beside)
	}
	if err == nil {
		err = sealed.seal()
	}
	return t.done, err
}

// cut returns the ends of the partitions, and the sessions' placement at that moment: the
// log may grow meanwhile.
func cut(ctx context.Context, log eventlog.Copier) ([]uint64, *eventlog.Placement, error) {
	for {
		before := log.Info().Partitions
		placement := log.Placement()
		ends, err := log.Ends(ctx)
		if err != nil || len(ends) == before && log.Info().Partitions == before {
			return ends, placement, err
		}
	}
}

// taking is a backup under way.
type taking struct {
	ctx    context.Context
	log    eventlog.Copier
	states *snapshot.Store
	ends   []uint64
	pace   pace
	lines  *json.Encoder
	done   Summary
}

// pacedWriter limits the rate of the lines.
type pacedWriter struct {
	t *taking
	w io.Writer
}

func (p pacedWriter) Write(b []byte) (int, error) {
	if err := p.t.pace.spend(p.t.ctx, len(b)); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}

func (t *taking) all(h Header) error {
	if err := t.lines.Encode(line{Backup: &h}); err != nil {
		return err
	}
	for session, err := range t.log.Sessions(t.ctx) {
		if err != nil {
			return err
		}
		if err := t.session(session); err != nil {
			return fmt.Errorf("session %q: %w", session, err)
		}
	}
	return t.lines.Encode(line{End: &t.done})
}

// copyTries is how often the copy of a session is retried of which nothing was written.
const copyTries = 5

// session copies a session if it exists.
func (t *taking) session(session string) error {
	for try := 1; ; try++ {
		begun, err := t.copy(session)
		if err == nil || context.Cause(t.ctx) != nil {
			return err
		}
		_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
		_, herr := t.log.Head(t.ctx, session)
		gone := errors.Is(herr, eventlog.ErrSessionNotFound)
		erased := gone || errors.Is(err, eventlog.ErrSessionNotFound) // it may have been created again
		switch {
		case !begun && gone:
			return nil
		case !begun && (trimmed || erased) && try < copyTries:
			continue
		case trimmed || erased:
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
		return err
	}
}

// copy reports whether it has begun to write.
func (t *taking) copy(session string) (begun bool, err error) {
	p := t.log.PartitionOf(session)
	if p >= len(t.ends) { // the log has grown since, and the session was created after that
		return false, nil
	}
	upTo := t.ends[p]
	floor, records, err := t.log.Copy(t.ctx, session, upTo)
	if err != nil {
		return false, err
	}
	n := 0
	for r, err := range records {
		if err == nil && n == 0 {
			begun = true
			err = t.begin(session, floor, upTo)
		}
		if err == nil {
			err = t.lines.Encode(line{Record: &r.Record, Unlinked: r.Unlinked})
		}
		if err != nil {
			return begun, err
		}
		n++
		t.done.Bytes += int64(len(r.Payload))
	}
	switch {
	case n > 0:
		t.done.Sessions++
		t.done.Records += n
		return true, t.lines.Encode(line{SessionEnd: &sessionEndLine{n}})
	case floor > 0: // at the moment of the backup it had only records that retention has removed
		return false, &eventlog.TrimmedError{Cursor: upTo, Floor: floor}
	}
	return false, nil // it was created later
}

// begin writes the beginning of a session: if retention has removed its first records,
// the saved folds that contain them. If none can be used, a state that this process knows,
// or that is saved in another form, takes their place.
func (t *taking) begin(session string, floor, upTo uint64) error {
	if err := t.lines.Encode(line{Session: &sessionLine{ID: session, Floor: floor}}); err != nil || floor == 0 {
		return err
	}
	later, n := false, 0
	for saved, err := range t.states.Saved(t.ctx, session) {
		switch {
		case err != nil:
			return err
		case saved.Sequence > upTo:
			later = true
		case saved.Sequence > floor && json.Valid(saved.State):
			if err := t.lines.Encode(line{Fold: lineOf(saved)}); err != nil {
				return err
			}
			n++
		}
	}
	if n > 0 {
		return nil
	}
	saved, err := t.states.Folded(t.ctx, session, upTo)
	_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
	switch {
	case trimmed && later:
		return fmt.Errorf("%w: its state is saved only at a later sequence", ErrChanged)
	case trimmed:
		return fmt.Errorf("no saved fold has its state, and retention has removed its records up to %d: erase the session to back up the others", floor)
	case err != nil:
		return err
	}
	return t.lines.Encode(line{Fold: lineOf(saved)})
}
