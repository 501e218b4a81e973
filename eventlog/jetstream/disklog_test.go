package jetstream_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

// diskLog is a log on a server that can be restarted, and whose files and streams a test
// changes without the log.
type diskLog struct {
	t   *testing.T
	dir string
	srv *embed.Server
	nc  *nats.Conn
	js  natsjs.JetStream
	log *jetstream.Log

	durability eventlog.Durability
}

func newDiskLog(t *testing.T) *diskLog {
	t.Helper()
	s := &diskLog{t: t, dir: t.TempDir(), durability: "interval=1m"}
	s.start(false)
	t.Cleanup(s.stop)
	return s
}

func (s *diskLog) start(readOnly bool) {
	s.t.Helper()
	var err error
	s.srv, err = embed.Start(s.t.Context(), embed.Options{DataDir: s.dir, SyncInterval: time.Minute})
	require.NoError(s.t, err)
	s.nc, err = s.srv.Connect(nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	require.NoError(s.t, err)
	s.js, err = natsjs.New(s.nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(s.t, err)
	s.log, err = jetstream.Open(s.t.Context(), s.nc, &jetstream.Options{Durability: s.durability, ReadOnly: readOnly})
	require.NoError(s.t, err)
}

func (s *diskLog) stop() {
	if s.srv == nil {
		return
	}
	require.NoError(s.t, s.log.Close())
	s.nc.Close()
	s.srv.Stop()
	s.srv = nil
}

// append appends texts of a new writer after the session's head and returns the last
// sequence.
func (s *diskLog) append(session string, texts ...string) uint64 {
	s.t.Helper()
	var entries []eventlog.Entry
	for _, text := range texts {
		entries = append(entries, logtest.Text(session, text))
	}
	return s.appendEntries(session, entries...)
}

func (s *diskLog) appendEntries(session string, entries ...eventlog.Entry) uint64 {
	s.t.Helper()
	return logtest.AppendNext(s.t, s.log, session, entries...)
}

// publish stores a message without the log.
func (s *diskLog) publish(subject string, header nats.Header, data []byte) uint64 {
	s.t.Helper()
	ack, err := s.js.PublishMsg(s.t.Context(), &nats.Msg{Subject: subject, Header: header, Data: data})
	require.NoError(s.t, err)
	return ack.Sequence
}

func (s *diskLog) delete(stream string, seq uint64) {
	s.t.Helper()
	st, err := s.js.Stream(s.t.Context(), stream)
	require.NoError(s.t, err)
	require.NoError(s.t, st.DeleteMsg(s.t.Context(), seq))
}

// last returns a subject's last message.
func (s *diskLog) last(stream, subject string) *natsjs.RawStreamMsg {
	s.t.Helper()
	st, err := s.js.Stream(s.t.Context(), stream)
	require.NoError(s.t, err)
	m, err := st.GetLastMsgForSubject(s.t.Context(), subject)
	require.NoError(s.t, err)
	return m
}

// place is a finding without its text.
type place struct {
	code     integrity.Code
	session  string
	sequence uint64
}

// verifyAll verifies the whole store.
func (s *diskLog) verifyAll() (problems, notes []place, records int) {
	s.t.Helper()
	found := func(f integrity.Finding) {
		require.NotEmpty(s.t, f.Detail)
		p := place{f.Code, f.Session, f.Sequence}
		if f.Code.IsNote() {
			notes = append(notes, p)
		} else {
			s.t.Logf("%s %s %d: %s", f.Code, f.Session, f.Sequence, f.Detail)
			problems = append(problems, p)
		}
	}
	sessions, err := s.log.VerifySubjects(s.t.Context(), found)
	require.NoError(s.t, err)
	for _, session := range sessions {
		n, err := s.log.Verify(s.t.Context(), session, found)
		require.NoError(s.t, err)
		records += n
	}
	require.NoError(s.t, s.log.VerifyStreams(s.t.Context(), found))
	slices.SortStableFunc(problems, func(a, b place) int { return cmp.Compare(a.sequence, b.sequence) })
	return problems, notes, records
}

func (s *diskLog) requireProblems(want ...place) {
	s.t.Helper()
	problems, _, _ := s.verifyAll()
	require.Equal(s.t, want, problems)
}

// richHistory fills a store with everything that a healthy one can have, and returns the
// number of records.
func richHistory(s *diskLog) (records int) {
	ctx, t := s.t.Context(), s.t
	note := func(n int) { records += n }
	large := strings.Repeat("large ", 200_000) // two parts
	claim := func(session, id string) *eventlog.Writer {
		head, err := s.log.Head(ctx, session)
		require.NoError(t, err)
		w := eventlog.NewWriter(s.log, session, eventlog.WriterOptions{ID: id, Head: head})
		require.NoError(t, w.Claim(ctx, &fact.RunClaimed{
			RunID: "run-1", Node: "n", Attempt: 1, Base: fact.Base{SessionID: session, Timestamp: 1},
		}))
		note(1)
		return w
	}
	// Several writers, one of them superseded; a clean-up, a rollback, blobs.
	const session = "all/of it.*"
	s.append(session, "a", "b")
	note(2)
	w1 := claim(session, "w-1")
	require.NoError(t, w1.Append(ctx, logtest.Text(session, "c"), logtest.Text(session, large)))
	note(2)
	s.append(session, "from outside", large)
	note(2)
	require.NoError(t, w1.Append(ctx, logtest.Text(session, "d")))
	note(1)
	w2 := claim(session, "w-2")
	require.ErrorIs(t, w1.Append(ctx, logtest.Text(session, "late")), eventlog.ErrSuperseded)
	require.NoError(t, w2.Append(ctx, logtest.Text(session, "e")))
	note(1)
	marker, err := eventlog.CleanupToStep(ctx, s.log, session, session, 0, 0)
	require.NoError(t, err)
	require.NotNil(t, marker)
	note(1)
	back := s.append(session, "f")
	s.append(session, "g")
	note(2)
	marker, err = eventlog.Rollback(ctx, s.log, session, back, eventlog.RollbackOptions{Restore: []byte("{}")})
	require.NoError(t, err)
	require.NotNil(t, marker)
	note(2)

	// Sealed and purged, and sealed again, over more than one directory.
	for i := range 270 { // the directory of segments has several levels
		s.append("long", fmt.Sprint(i))
		require.NoError(t, s.log.Seal(ctx, "long"))
		if i == 100 || i == 101 {
			_, err := s.log.Purge(ctx, now)
			require.NoError(t, err)
		}
	}
	note(270)
	// Trimmed, with and without anything left in the log.
	for _, session := range []string{"trimmed", "trimmed and idle"} {
		w := eventlog.NewWriter(s.log, session, eventlog.WriterOptions{ID: "of " + session})
		for range 10 {
			require.NoError(t, w.Append(ctx, logtest.Text(session, "x"), logtest.Text(session, "y")))
			require.NoError(t, s.log.Seal(ctx, session))
		}
		_, err := s.log.Purge(ctx, now)
		require.NoError(t, err)
		if session == "trimmed" {
			require.NoError(t, w.Append(ctx, logtest.Text(session, "on")))
			note(1)
		}
		before := recordsOf(t, s.log, session, 0, 0)
		_, err = s.log.Trim(ctx, session, before[9].Sequence)
		require.NoError(t, err)
		note(10)
	}
	// Erased, in the middle of the log and at its end.
	s.append("erased", "a", large)
	require.NoError(t, s.log.Seal(ctx, "erased"))
	s.append("long", "between")
	note(1)
	s.append("erased", "b")
	s.append("erased too", "a")
	for _, session := range []string{"erased", "erased too"} {
		_, err := s.log.Erase(ctx, session)
		require.NoError(t, err)
	}
	return records
}

// claimed appends the records of two writers, the second after it has claimed.
func (s *diskLog) claimed(session string) {
	for _, id := range []string{"first", "second"} {
		head, err := s.log.Head(s.t.Context(), session)
		require.NoError(s.t, err)
		w := eventlog.NewWriter(s.log, session, eventlog.WriterOptions{ID: id, Head: head})
		require.NoError(s.t, w.Claim(s.t.Context(), &fact.RunClaimed{
			RunID: "run-1", Node: "n", Attempt: 1, Base: fact.Base{SessionID: session, Timestamp: 1},
		}))
		require.NoError(s.t, w.Append(s.t.Context(), logtest.Text(session, "a")))
	}
}
