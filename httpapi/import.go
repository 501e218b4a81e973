package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
)

// importRecords answers POST /sessions/{id}/import: the records of an exported
// session, one a line, become a new session of that id (see eventlog.Import).
// The same request goes on after a break. The body may be of any length and
// need not say it, as no more than a line of it is held. It counts as a stream of
// its caller.
//
// It writes facts as they are, so it has an operation of its own: who may
// append may not import.
//
// Records say whose the session is, so it is not for callers that are bound to a
// user or have a tenant.
func (s *controlRoutes) importRecords(w http.ResponseWriter, r *request) error {
	if c := auth.CallerOf(r.Context()); c.Bound() || c.Tenant != "" {
		return auth.ErrForbidden
	}
	ctx, cancel := r.untilClosed(r.Context())
	defer cancel()
	if err := r.openStream(); err != nil {
		return err
	}
	body := &importBody{ctx: ctx, rc: http.NewResponseController(w), in: r.Body, held: &r.body}
	defer context.AfterFunc(ctx, body.expire)()
	done, err := eventlog.Import(ctx, s.log, r.session, body.records(), eventlog.ImportOptions{Restore: projector.TranslateRestore})
	if err != nil {
		// net/http reads what has come of the body before it answers, else the
		// client might not get the answer; it must not wait for the rest.
		_ = body.rc.SetReadDeadline(time.Now().Add(leftoverTimeout))
	}
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
		return &lineError{body.line, done.Records, problem}
	}
	if errors.Is(err, eventlog.ErrSessionExists) {
		return &existsError{body.line, done.Records}
	}
	if err != nil {
		return err
	}
	_ = body.rc.SetReadDeadline(time.Time{}) // see readBody
	r.audit("session imported")
	return r.ok(w, api.Imported{Imported: done, Durability: s.log.Info().Durability})
}

// lineError tells which line of an import can't be used, from 1, and how many
// records before it are there.
type lineError struct {
	line, records int
	problem       *eventlog.ValidationError
}

func (e *lineError) Error() string { return fmt.Sprintf("httpapi: line %d: %v", e.line, e.problem) }

// existsError tells from which line on a session holds something else.
type existsError struct{ line, records int }

func (e *existsError) Error() string {
	return fmt.Sprintf("httpapi: not the session's line %d", e.line)
}

// importBody reads records off a body that a client takes its time to send.
type importBody struct {
	ctx  context.Context
	rc   *http.ResponseController
	in   io.Reader
	held *holding
	line int // of the record that was yielded last, from 1
}

// Read implements io.Reader. A client may be silent for as long as it may take
// to send another body.
func (b *importBody) Read(p []byte) (int, error) {
	_ = b.rc.SetReadDeadline(time.Now().Add(defaultBodyTimeout))
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.in.Read(p)
}

// expire ends a Read that waits.
func (b *importBody) expire() { _ = b.rc.SetReadDeadline(time.Unix(1, 0)) }

// split is bufio.ScanLines. The scanner's buffer, which keeps the room of the
// longest line, counts as it grows.
func (b *importBody) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if more := int64(len(data)) - b.held.n; len(data) > firstRead && more > 0 {
		if err := b.held.take(more); err != nil {
			return 0, nil, err
		}
	}
	return bufio.ScanLines(data, atEOF)
}

func (b *importBody) records() iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		in := bufio.NewScanner(b)
		in.Buffer(nil, api.MaxImportLine)
		in.Split(b.split)
		for in.Scan() {
			b.line++
			line := bytes.Trim(in.Bytes(), space)
			if len(line) == 0 {
				continue
			}
			if r, err := eventlog.ParseRecord(line); !yield(r, err) || err != nil {
				return
			}
		}
		err := in.Err()
		switch {
		case err == nil:
			return
		case errors.Is(err, errCallerBusy), errors.Is(err, errAllBusy):
		case errors.Is(err, bufio.ErrTooLong):
			err = &sizeError{fmt.Sprintf("line %d is too long", b.line+1), api.MaxImportLine}
		case b.ctx.Err() != nil:
			err = context.Cause(b.ctx)
		default:
			err = fmt.Errorf("%w: %w", errBodyLost, err)
		}
		yield(eventlog.Record{}, err)
	}
}
