package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	pageRecords = 512     // of one batched direct get
	pageBytes   = 4 << 20 // of one batched direct get
	// readTries is how often a page is asked for again without any progress
	// before a read is incomplete; a replica may lag behind its leader.
	readTries = 50
	readPause = 20 * time.Millisecond
)

// Head implements eventlog.Log: it asks the stream's leader, since a direct
// get may be answered by a replica that lags.
func (l *Log) Head(ctx context.Context, session string) (uint64, error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return 0, err
	}
	req, _ := json.Marshal(map[string]string{"last_by_subj": subject})
	try, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answer, err := l.nc.RequestWithContext(try, "$JS.API.STREAM.MSG.GET."+stream, req)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	case l.isClosed():
		return 0, eventlog.ErrClosed
	default:
		return 0, fmt.Errorf("jetstream: head: %w", err)
	}
	var body struct {
		Message struct {
			Sequence uint64 `json:"seq"`
		} `json:"message"`
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &body); err != nil {
		return 0, fmt.Errorf("jetstream: head: %w", err)
	}
	if e := body.Error; e != nil {
		if e.ErrCode == codeNoMessageFound {
			return 0, eventlog.ErrSessionNotFound
		}
		return 0, e
	}
	return body.Message.Sequence, nil
}

// Read implements eventlog.Log.
func (l *Log) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		head, err := l.Head(ctx, session)
		if err == nil && max(from, to) > head {
			err = &eventlog.CursorAheadError{Cursor: max(from, to), Head: head}
		}
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		if to == 0 {
			to = head
		}
		idle := 0
		for from < to {
			page, err := l.page(ctx, session, from)
			if err == nil && len(page) == 0 {
				err = eventlog.ErrIncomplete
			}
			if err != nil {
				if idle++; idle < readTries && errors.Is(err, eventlog.ErrIncomplete) && pause(ctx) {
					continue
				}
				yield(eventlog.Record{}, err)
				return
			}
			idle = 0
			for _, r := range page {
				if r.Sequence > to {
					return
				}
				if !yield(r, nil) {
					return
				}
				from = r.Sequence
			}
			if from >= head {
				return
			}
		}
	}
}

// page returns the first records behind from, without gaps: it checks that
// each names its predecessor and that the end mark names the last one, and
// returns ErrIncomplete where something was lost.
func (l *Log) page(ctx context.Context, session string, from uint64) ([]eventlog.Record, error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return nil, err
	}
	inbox := l.nc.NewInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("jetstream: read: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	req, _ := json.Marshal(map[string]any{
		"seq": from + 1, "next_by_subj": subject, "batch": pageRecords, "max_bytes": pageBytes,
	})
	if err := l.nc.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, req); err != nil {
		return nil, fmt.Errorf("jetstream: read: %w", err)
	}
	try, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var page []eventlog.Record
	var last uint64
	for {
		m, err := sub.NextMsgWithContext(try)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("%w: %w", eventlog.ErrIncomplete, err)
		}
		switch first(m.Header, headerStatus) {
		case "":
		case "204", "404":
			if n := lastSequence(m.Header); n != last {
				return nil, fmt.Errorf("%w: the page ends at %d, not at %d", eventlog.ErrIncomplete, n, last)
			}
			return page, nil
		default:
			return nil, fmt.Errorf("jetstream: read: status %s", first(m.Header, headerStatus))
		}
		if n := lastSequence(m.Header); n != last {
			return nil, fmt.Errorf("%w: %d is followed by the successor of %d", eventlog.ErrIncomplete, last, n)
		}
		r, err := recordOf(m.Header, m.Data)
		if err != nil {
			return nil, err
		}
		page, last = append(page, r), r.Sequence
	}
}

func lastSequence(h nats.Header) uint64 {
	n, _ := strconv.ParseUint(first(h, headerLastSequence), 10, 64)
	return n
}

func pause(ctx context.Context) bool {
	t := time.NewTimer(readPause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
