package verify

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestForgedSegmentsAreFound: segments with a correct checksum and wrong content.
func TestForgedSegmentsAreFound(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Minute})
	l, err := maintenance.Open(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	defer l.Close()
	for i, tc := range []struct {
		name  string
		forge func(*wire.Segment)
		want  integrity.Code
	}{
		{"a changed payload", func(s *wire.Segment) { s.Records[1].Payload = []byte(`{"type":"x","y":2}`) }, integrity.FoundSegmentDiffers},
		{"a changed envelope", func(s *wire.Segment) { s.Records[1].Run = "another" }, integrity.FoundSegmentDiffers},
		{"a record less", func(s *wire.Segment) { s.Records = append(s.Records[:1], s.Records[2:]...) }, integrity.FoundSegmentDiffers},
		{"another predecessor", func(s *wire.Segment) { s.Previous-- }, integrity.FoundSegment},
		{"a later predecessor", func(s *wire.Segment) { s.Previous++ }, integrity.FoundSegmentGap},
		{"another index", func(s *wire.Segment) { s.Index++; s.Directory = append(s.Directory, wire.SegmentRef{}) }, integrity.FoundSegmentGap},
		{"a directory without an entry", func(s *wire.Segment) { s.Directory = s.Directory[1:] }, integrity.FoundSegment},
		{"a directory that points elsewhere", func(s *wire.Segment) { s.Directory[0].At = 1 << 20 }, integrity.FoundSegment},
		{"a directory with another end", func(s *wire.Segment) { s.Directory[0].Last++ }, integrity.FoundSegment},
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
		found := func() (codes []integrity.Code) {
			_, err := New(l.Store).Verify(t.Context(), session, func(f integrity.Finding) {
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
		s, at, err := l.LastSegment(t.Context(), session)
		require.NoError(t, err)
		tc.forge(s)
		b, err := s.Pack()
		require.NoError(t, err)
		require.NoError(t, l.Remove(t.Context(), layout.SegmentStream(0), at))
		_, err = l.Publish(t.Context(), []*nats.Msg{{Subject: layout.SegmentSubject(session, 0), Data: b, Header: nats.Header{}}})
		require.NoError(t, err)
		require.Contains(t, found(), tc.want, tc.name)
	}
}

// TestReportsOfServersAreNoErasures: a server that is not part of the cluster any more
// may have left one. An erasure is reported once, and only if there is one.
func TestReportsOfServersAreNoErasures(t *testing.T) {
	t.Parallel()
	nc := storetest.Connect(t)
	l, err := maintenance.Open(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	defer l.Close()
	for _, session := range []string{"gone", "wanted"} {
		for _, server := range []string{"n1", "n2"} {
			storetest.PublishForeign(t, nc, layout.ReportSubject(session, 0, server), nil, []byte("7"))
		}
	}
	require.NoError(t, l.Want(t.Context(), "wanted", storetest.Appended(t, l, "wanted", 0, storetest.TextEntries("x", 1))))
	var found []integrity.Finding
	_, err = New(l.Store).VerifySubjects(t.Context(), func(f integrity.Finding) { found = append(found, f) })
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, integrity.FoundErasing, found[0].Code)
	require.Equal(t, "wanted", found[0].Session)
}

// TestTooManyMissingSequencesAreCounted: a list of them may be more than the server can
// send.
func TestTooManyMissingSequencesAreCounted(t *testing.T) {
	t.Parallel()
	l, err := maintenance.Open(t.Context(), storetest.Connect(t), link.Options{})
	require.NoError(t, err)
	defer l.Close()
	storetest.Appended(t, l, "first", 0, storetest.TextEntries("x", 1))
	storetest.Appended(t, l, "erased", 0, storetest.TextEntries("x", 3))
	_, err = l.Erase(t.Context(), "erased") // and its tombstone
	require.NoError(t, err)
	storetest.Appended(t, l, "last", 0, storetest.TextEntries("x", 1))
	for most, want := range map[int]string{
		4: "4 sequences of stream HELIX_LOG_0 hold nothing: they were erased sessions', or are lost: 2-5",
		3: "4 sequences of stream HELIX_LOG_0 hold nothing: they were removed, or are lost. They are too many to list",
	} {
		v := New(l.Store)
		v.mostMissing = most
		var details []string
		require.NoError(t, v.VerifyStreams(t.Context(), func(f integrity.Finding) {
			if f.Code == integrity.FoundSequencesMissing {
				details = append(details, f.Detail)
			}
		}))
		require.Len(t, details, 1)
		require.Contains(t, details[0], want)
	}
}
