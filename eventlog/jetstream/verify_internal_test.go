package jetstream

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
)

// TestForgedSegmentsAreFound: segments whose checksums are right and whose
// content is not.
func TestForgedSegmentsAreFound(t *testing.T) {
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), SyncInterval: time.Minute})
	require.NoError(t, err)
	defer srv.Stop()
	nc, err := srv.Connect()
	require.NoError(t, err)
	defer nc.Close()
	l, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	defer l.Close()
	for i, tc := range []struct {
		name  string
		forge func(*segment)
		want  eventlog.FindingCode
	}{
		{"a changed payload", func(s *segment) { s.records[1].Payload = []byte(`{"type":"x","y":2}`) }, eventlog.FoundSegmentDiffers},
		{"a changed envelope", func(s *segment) { s.records[1].Run = "another" }, eventlog.FoundSegmentDiffers},
		{"a record less", func(s *segment) { s.records = append(s.records[:1], s.records[2:]...) }, eventlog.FoundSegmentDiffers},
		{"another predecessor", func(s *segment) { s.previous-- }, eventlog.FoundSegment},
		{"a later predecessor", func(s *segment) { s.previous++ }, eventlog.FoundSegmentGap},
		{"another index", func(s *segment) { s.index++; s.directory = append(s.directory, segmentRef{}) }, eventlog.FoundSegmentGap},
		{"a directory without an entry", func(s *segment) { s.directory = s.directory[1:] }, eventlog.FoundSegment},
		{"a directory that points elsewhere", func(s *segment) { s.directory[0].at = 1 << 20 }, eventlog.FoundSegment},
		{"a directory that tells another end", func(s *segment) { s.directory[0].last++ }, eventlog.FoundSegment},
	} {
		session := fmt.Sprint("s", i)
		head := uint64(0)
		for n := range 3 { // segments; the last one is forged
			var entries []eventlog.Entry
			for k := range 5 {
				entries = append(entries, eventlog.Entry{
					Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "x", Agent: session, Writer: fmt.Sprint("w", n), Ordinal: uint64(k + 1)},
					Payload:  []byte(`{"type":"x"}`),
				})
			}
			head, err = l.Append(t.Context(), session, head, entries)
			require.NoError(t, err)
			require.NoError(t, l.Seal(t.Context(), session))
		}
		found := func() (codes []eventlog.FindingCode) {
			_, err := l.Verify(t.Context(), session, func(f eventlog.Finding) {
				if !f.Code.IsNote() {
					require.Equal(t, session, f.Session)
					t.Log(tc.name, ": ", f)
					codes = append(codes, f.Code)
				}
			})
			require.NoError(t, err)
			return codes
		}
		require.Empty(t, found(), tc.name)
		s, at, err := l.lastSegment(t.Context(), session)
		require.NoError(t, err)
		tc.forge(s)
		b, err := s.pack()
		require.NoError(t, err)
		require.NoError(t, l.remove(t.Context(), segmentStream(0), at))
		_, err = l.publish(t.Context(), []*nats.Msg{{Subject: segmentSubject(session, 0), Data: b, Header: nats.Header{}}})
		require.NoError(t, err)
		require.Contains(t, found(), tc.want, tc.name)
	}
}
