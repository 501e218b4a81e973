package backup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/version"
	"github.com/helixd/helixd/snapshot"
)

// Visitor receives the content of a backup, in its order; nil functions are skipped. An
// error ends the reading. The content is valid only if [Read] then returns no error,
// since the hash is at the end of the file.
type Visitor struct {
	Begin func(Header) error
	// Fold receives a saved fold of a session, before the session.
	Fold func(session string, s snapshot.Saved) error
	// Session receives a session's records; retention has removed those up to floor.
	// Sessions come sorted by bytes.
	Session func(session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) error
	// Item receives what was stored beside the log, after all sessions. of is Beside.Name.
	Item func(of string, item eventlog.CopiedItem) error
}

// Read reads a backup to its end. Errors: ErrDamaged, ErrVersion, those of v and of the
// file.
func Read(ctx context.Context, in io.Reader, v Visitor) (Header, Summary, error) {
	sealed := newSealReader(in)
	parts := &frames{r: bufio.NewReader(sealed)}
	packed, err := newUnpacker(parts)
	if err != nil {
		return Header{}, Summary{}, err
	}
	defer packed.Close()
	r := &reader{ctx: ctx, sealed: sealed, frames: parts, lines: newLines(packed), visitor: v}
	err = r.all()
	return r.header, r.done, err
}

func newUnpacker(in io.Reader) (*zstd.Decoder, error) {
	d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return d, nil
}

func newLines(in io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	return lines
}

type reader struct {
	ctx     context.Context
	sealed  *sealReader
	frames  *frames
	lines   *bufio.Scanner
	visitor Visitor

	header  Header
	session string // the last one that was read
	done    Summary
}

// next reads a line; after the last one the error is io.EOF.
func (r *reader) next() (l line, err error) {
	if err := context.Cause(r.ctx); err != nil {
		return l, err
	}
	if !r.lines.Scan() {
		switch err := r.lines.Err(); {
		case r.sealed.failed() != nil:
			return l, r.sealed.failed()
		case err == nil:
			return l, io.EOF
		case errors.Is(err, ErrDamaged):
			return l, err
		default:
			return l, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if err := json.Unmarshal(r.lines.Bytes(), &l); err != nil {
		return l, damaged("a line is not JSON: %v", err)
	}
	return l, nil
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

func (r *reader) all() error {
	l, err := r.next()
	switch {
	case errors.Is(err, io.EOF):
		return damaged("it is empty")
	case err != nil:
		return err
	case l.Backup == nil || l.Backup.Version < 1 || len(l.Backup.Ends) == 0 && l.Backup.Version <= Version:
		return damaged("it does not begin with a header")
	}
	if err := version.Check("the backup", l.Backup.Version, l.Backup.Helixd); err != nil {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	r.header = *l.Backup
	if r.visitor.Begin != nil {
		if err := r.visitor.Begin(r.header); err != nil {
			return err
		}
	}
	for {
		l, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			return damaged("its last line is missing")
		case err != nil:
			return err
		case l.End != nil:
			return r.end(*l.End)
		case l.Session == nil:
			return damaged("a line is outside of a session")
		}
		if err := r.readSession(*l.Session); err != nil {
			return err
		}
	}
}

// end compares the totals, and reads to the end of the file, so that the hash is checked.
func (r *reader) end(told Summary) error {
	if told != r.done {
		return damaged("it announces %d sessions with %d records and %d bytes, and contains %d, %d and %d",
			told.Sessions, told.Records, told.Bytes, r.done.Sessions, r.done.Records, r.done.Bytes)
	}
	if err := r.atEnd(); err != nil {
		return err
	}
	return r.readItems()
}

// atEnd returns an error if there is another line.
func (r *reader) atEnd() error {
	_, err := r.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return damaged("there is more after its last line")
	}
	return err
}

// within is next where the file must not end.
func (r *reader) within() (line, error) {
	l, err := r.next()
	if errors.Is(err, io.EOF) {
		err = damaged("it ends within session %q", r.session)
	}
	return l, err
}

func (r *reader) readSession(s sessionLine) error {
	if s.ID <= r.session {
		return damaged("session %q comes after session %q", s.ID, r.session)
	}
	r.session = s.ID
	l, err := r.within()
	for err == nil && l.Fold != nil {
		if r.visitor.Fold != nil {
			if err := r.visitor.Fold(s.ID, l.Fold.saved()); err != nil {
				return err
			}
		}
		l, err = r.within()
	}
	c := &sessionReader{r: r, line: l, err: err, last: s.Floor}
	if r.visitor.Session != nil {
		if err := r.visitor.Session(s.ID, s.Floor, c.records()); err != nil {
			return err
		}
	}
	for range c.records() { // records that the visitor has not read
	}
	return c.end()
}

// sessionReader reads the records of one session.
type sessionReader struct {
	r    *reader
	line line // the next one
	err  error
	last uint64 // sequence
	n    int
}

// records yields the records that were not yielded yet.
func (s *sessionReader) records() iter.Seq2[eventlog.Copied, error] {
	return func(yield func(eventlog.Copied, error) bool) {
		for s.err == nil && s.line.Record != nil {
			c := eventlog.Copied{Record: *s.line.Record, Unlinked: s.line.Unlinked}
			if c.Sequence <= s.last || c.Sequence > slices.Max(s.r.header.Ends) {
				s.err = damaged("session %q: record %d comes after record %d", s.r.session, c.Sequence, s.last)
				break
			}
			s.last = c.Sequence
			s.n++
			s.r.done.Bytes += int64(len(c.Payload))
			more := yield(c, nil)
			s.line, s.err = s.r.within()
			if !more {
				return
			}
		}
		if s.err != nil {
			yield(eventlog.Copied{}, s.err)
		}
	}
}

func (s *sessionReader) end() error {
	switch {
	case s.err != nil:
		return s.err
	case s.line.SessionEnd == nil || s.line.SessionEnd.Records != s.n || s.n == 0:
		return damaged("session %q has %d records and another end", s.r.session, s.n)
	}
	s.r.done.Sessions++
	s.r.done.Records += s.n
	return nil
}
