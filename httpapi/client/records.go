package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
)

const (
	ndjson = "application/x-ndjson"
	// maxLine is the longest line of records, in bytes.
	maxLine = 64 << 20
)

// RecordRange says which records of a session are wanted: From < sequence <=
// To, and of those the ones that all filters take.
type RecordRange struct {
	From  uint64
	To    uint64 // 0: the head
	Limit int    // how many records; 0: all
	// Dead includes the records that were truncated by a marker up to To.
	Dead bool
	// Follow continues with the records that come, for as long as the context
	// allows or up to Limit. It includes what is truncated, as Dead does, and
	// there is no To.
	Follow bool

	// Filters; what is empty takes all.
	Kind  eventlog.Kind
	Types []string // any of them
	Agent string   // the session within the tree
	Run   string
	Call  string
}

func (r RecordRange) query() url.Values {
	q := given(map[string]string{
		"from": positive(r.From), "to": positive(r.To), "limit": positive(uint64(max(0, r.Limit))), "dead": flag(r.Dead), "follow": flag(r.Follow),
		"kind": string(r.Kind), "agent": r.Agent, "run": r.Run, "call": r.Call,
	})
	if len(r.Types) > 0 {
		q["type"] = r.Types
	}
	return q
}

// Records yields records of a session's log, facts included. Unless an error is last,
// they are all that were requested. If a connection breaks, Records continues after the
// last record. It can't do so without To and Dead, since the head may have moved, and
// with it what is truncated: that is [ErrStreamDropped]. An answer without a length and
// an end, as through a proxy of HTTP/1.0, is [ErrMalformed].
//
// With Follow, what ends it is Limit or an error: what the server refuses, such
// as NOT_FOUND once the session is erased, the cause of a ctx that has ended,
// or, when Options.MaxRetries attempts in a row have brought no record, what
// the last one failed with. Connections that have lasted for 30 s don't count
// as failed.
func (c *Client) Records(ctx context.Context, sessionID string, r RecordRange) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		rest := r
		k := get("records", rest.query()).of("sessions", sessionID)
		k.Accept = ndjson
		err := c.follow(ctx, &k, ndjson, func(a *remotehttp.Response, moved func()) error {
			if !a.Framed() && !r.Follow {
				return fmt.Errorf("%w: neither a length nor an end is given", ErrMalformed)
			}
			for line, err := range a.Lines(maxLine) {
				if err != nil {
					return err
				}
				if len(line) == 0 && r.Follow {
					continue // a heartbeat
				}
				var rec eventlog.Record
				if json.Unmarshal(line, &rec) != nil || rec.Sequence == 0 {
					return fmt.Errorf("%w: a line is no record", ErrMalformed)
				}
				if rec.Sequence <= rest.From {
					return fmt.Errorf("%w: %d comes after %d", ErrOutOfOrder, rec.Sequence, rest.From)
				}
				moved()
				k.safe = r.To > 0 || r.Dead || r.Follow
				rest.From = rec.Sequence
				if rest.Limit > 0 {
					rest.Limit--
				}
				k.Query = rest.query()
				if !yield(rec, nil) || r.Limit > 0 && rest.Limit == 0 {
					return nil
				}
			}
			if r.Follow {
				return ErrStreamDropped // there is more to come
			}
			return nil
		})
		if err != nil {
			yield(eventlog.Record{}, err)
		}
	}
}
