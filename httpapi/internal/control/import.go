package control

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
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// ImportRecords answers POST /sessions/{id}/import: the records of an exported
// session, one a line, become a new session of that id (see eventlog.Import).
// If the import breaks off, the same request continues it. The body may have any length,
// and needs no Content-Length, since the server holds no more than a line of it. An import
// counts as a stream of its caller.
//
// It writes facts as they are, so it has its own operation: a caller that may append may
// not import. The records say whose the session is, so callers that are bound to a user or
// have a tenant may not import.
func (s *Routes) ImportRecords(w http.ResponseWriter, r *web.Request) error {
	if c := auth.CallerOf(r.Context()); c.Bound() || c.Tenant != "" {
		return auth.ErrForbidden
	}
	ctx, cancel := r.UntilClosed(r.Context())
	defer cancel()
	if err := r.OpenStream(); err != nil {
		return err
	}
	body := &importBody{ctx: ctx, rc: http.NewResponseController(w), in: r.Body, held: &r.Held}
	defer context.AfterFunc(ctx, body.expire)()
	done, err := eventlog.Import(ctx, s.log, r.Session, body.records(), eventlog.ImportOptions{Restore: projector.TranslateRestore})
	if err != nil {
		// net/http reads what has come of the body before it answers, else the
		// client might not get the answer; it must not wait for the rest.
		_ = body.rc.SetReadDeadline(time.Now().Add(web.LeftoverTimeout))
	}
	if problem, ok := errors.AsType[*eventlog.ValidationError](err); ok {
		return &LineError{body.line, done.Records, problem}
	}
	if errors.Is(err, eventlog.ErrSessionExists) {
		return &ExistsError{body.line, done.Records}
	}
	if err != nil {
		return err
	}
	_ = body.rc.SetReadDeadline(time.Time{}) // see ReadBody
	r.Audit("session imported")
	return r.OK(w, api.Imported{Imported: done, Durability: s.log.Info().Durability})
}

// LineError: a line of an import, from 1, can't be used. Records is how many records
// before it are stored.
type LineError struct {
	Line, Records int
	Problem       *eventlog.ValidationError
}

func (e *LineError) Error() string { return fmt.Sprintf("httpapi: line %d: %v", e.Line, e.Problem) }

// ExistsError: from a line on, the session that exists has other records.
type ExistsError struct{ Line, Records int }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("httpapi: not the session's line %d", e.Line)
}

// importBody reads records from a body that may take long to arrive.
type importBody struct {
	ctx  context.Context
	rc   *http.ResponseController
	in   io.Reader
	held *web.Holding
	line int // of the record that was yielded last, from 1
}

// Read implements io.Reader. Each read has the time of another request's whole body.
func (b *importBody) Read(p []byte) (int, error) {
	_ = b.rc.SetReadDeadline(time.Now().Add(web.DefaultBodyTimeout))
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.in.Read(p)
}

// expire ends a Read in progress.
func (b *importBody) expire() { _ = b.rc.SetReadDeadline(time.Unix(1, 0)) }

// split is bufio.ScanLines. It counts the scanner's buffer, which keeps the size of the
// longest line, as it grows.
func (b *importBody) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if more := int64(len(data)) - b.held.N; len(data) > web.FirstRead && more > 0 {
		if err := b.held.Take(more); err != nil {
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
			line := bytes.Trim(in.Bytes(), web.Space)
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
		case errors.Is(err, web.ErrCallerBusy), errors.Is(err, web.ErrAllBusy):
		case errors.Is(err, bufio.ErrTooLong):
			err = &web.SizeError{Reason: fmt.Sprintf("line %d is too long", b.line+1), Limit: api.MaxImportLine}
		case b.ctx.Err() != nil:
			err = context.Cause(b.ctx)
		default:
			err = fmt.Errorf("%w: %w", web.ErrBodyLost, err)
		}
		yield(eventlog.Record{}, err)
	}
}
