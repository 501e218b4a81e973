package client_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/client"
)

// timeless returns records without their times, which are no more exact once
// records are sealed.
func timeless(records []eventlog.Record) []eventlog.Record {
	for i := range records {
		records[i].Time = time.Time{}
	}
	return records
}

// Records are what the log holds, byte for byte, however connections are cut.
func TestRecordsAcrossCuts(t *testing.T) {
	s := newServer(t)
	at := s.written("s", 300)
	ctx := ctxOf(t)
	_, err := s.client().Rollback(ctx, "s", client.Target{Sequence: at.FirstSequence + 99})
	require.NoError(t, err)
	head, err := s.log.Head(ctx, "s")
	require.NoError(t, err)
	stored := timeless(all(t, s.log.Read(ctx, "s", 0, head)))
	effective := timeless(all(t, eventlog.Effective(ctx, s.log, "s", 0, head)))
	require.Less(t, len(effective), len(stored))

	for _, tc := range []struct {
		name string
		r    client.RecordRange
		want []eventlog.Record
	}{
		{"all", client.RecordRange{Dead: true}, stored},
		{"what survives", client.RecordRange{To: head}, effective},
		{"a part", client.RecordRange{From: stored[9].Sequence, To: stored[249].Sequence}, stored[10:250]},
		{"some", client.RecordRange{From: stored[9].Sequence, Dead: true, Limit: 150}, stored[10:160]},
	} {
		require.Equal(t, tc.want, timeless(all(t, s.client().Records(ctx, "s", tc.r))), tc.name)
		p, url := newCutter(t, s, func(int) int { return 9000 })
		require.Equal(t, tc.want, timeless(all(t, quick(url).Records(ctx, "s", tc.r))), tc.name)
		require.Greater(t, int(p.accepted.Load()), 2, tc.name)
	}
}

// Without a bound, what is after a break may be of another state of the log.
func TestRecordsThatCantBeGoneOnWith(t *testing.T) {
	s := newServer(t)
	at := s.written("s", 300)
	p, url := newCutter(t, s, func(n int) int { return 9000 * n }) // the first one says nothing
	next := at.FirstSequence
	var last error
	for r, err := range quick(url).Records(ctxOf(t), "s", client.RecordRange{}) {
		if last = err; err == nil {
			require.Equal(t, next, r.Sequence)
			next++
		}
	}
	require.ErrorIs(t, last, client.ErrStreamDropped)
	require.Greater(t, next, at.FirstSequence)
	require.Less(t, next, at.LastSequence)
	require.EqualValues(t, 2, p.accepted.Load())
}

func TestRecordsThatAreNone(t *testing.T) {
	s := newServer(t)
	line := func(seq int) string {
		return fmt.Sprintf(`{"sequence":%d,"time":"2026-01-01T00:00:00Z","kind":"later","type":"x","agent":"s","data":{"a": 1},"more":true}`, seq)
	}
	for body, want := range map[string]error{
		line(3) + "\n" + line(3) + "\n": client.ErrOutOfOrder,
		line(3) + "\n<html>\n":          client.ErrMalformed,
		line(3) + "\n{}\n":              client.ErrMalformed,
		line(3) + "\n" + line(4):        client.ErrStreamDropped, // half a line, for all one knows
	} {
		s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/x-ndjson")
			_, _ = w.Write([]byte(body))
			return true
		})
		n := 0
		var last error
		for r, err := range s.client().Records(ctxOf(t), "s", client.RecordRange{}) {
			if last = err; err == nil {
				require.EqualValues(t, 3, r.Sequence, "later versions have more")
				n++
			}
		}
		require.ErrorIs(t, last, want)
		require.Equal(t, 1, n)
	}
	for _, err := range s.client().Records(ctxOf(t), "s", client.RecordRange{From: 7}) {
		require.ErrorIs(t, err, client.ErrOutOfOrder, "it was not asked for")
	}
}

// An answer that just ends with its connection may have been cut anywhere.
func TestRecordsThatNothingTellsTheEndOf(t *testing.T) {
	s := newServer(t)
	s.instead(func(w http.ResponseWriter, _ *http.Request) bool {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return false
		}
		defer conn.Close()
		_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n",
			`{"sequence":3,"time":"2026-01-01T00:00:00Z","kind":"later","type":"x","agent":"s","data":{}}`, "\n")
		return true
	})
	for _, err := range s.client().Records(ctxOf(t), "s", client.RecordRange{}) {
		require.ErrorIs(t, err, client.ErrMalformed)
	}
}

// A follower gets each record once, also later ones, however connections are cut, until
// the session has no more.
func TestFollowedRecordsAcrossCuts(t *testing.T) {
	s := newServer(t)
	at := s.written("s", 200)
	p, url := newCutter(t, s, func(int) int { return 9000 })
	ctx := ctxOf(t)
	var got []uint64
	var last error
	for r, err := range quick(url).Records(ctx, "s", client.RecordRange{From: at.FirstSequence, Follow: true}) {
		if last = err; err != nil {
			break
		}
		switch got = append(got, r.Sequence); r.Sequence {
		case at.LastSequence:
			_, err := s.client().AppendChunks(ctx, "s", texts("s", 1), client.AppendOptions{})
			require.NoError(t, err)
		case at.LastSequence + 1:
			_, err := s.client().Erase(ctx, "s")
			require.NoError(t, err)
		}
	}
	refused(t, last, 404, "NOT_FOUND")
	require.Len(t, got, 200)
	for i, sequence := range got {
		require.Equal(t, at.FirstSequence+1+uint64(i), sequence)
	}
	require.Greater(t, int(p.accepted.Load()), 2)
}

func TestFollowedRecordsHaveALimit(t *testing.T) {
	s := newServer(t)
	s.written("s", 5)
	some := client.RecordRange{Follow: true, Types: []string{"text_delta", "none"}, Limit: 3}
	require.Len(t, all(t, s.client().Records(ctxOf(t), "s", some)), 3)
}
