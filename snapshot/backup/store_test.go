package backup_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot"
	"github.com/helixd/helixd/snapshot/backup"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// store is a log with saved folds on its own server.
type store struct {
	t      *testing.T
	dir    string
	srv    *embed.Server
	nc     *nats.Conn
	log    *jetstream.Log
	folds  *foldsjs.Folds
	states *snapshot.Store
}

// newServer starts a server without a log.
func newServer(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, dir: t.TempDir()}
	s.connect()
	t.Cleanup(s.stop)
	return s
}

func newStore(t *testing.T, partitions int) *store {
	t.Helper()
	s := newServer(t)
	s.open(partitions)
	return s
}

func (s *store) connect() {
	s.t.Helper()
	var err error
	// As a daemon's; with GroupSync a log that grows waits for no other process.
	s.srv, err = embed.Start(s.t.Context(), embed.Options{DataDir: s.dir, SyncInterval: time.Minute, GroupSync: true})
	require.NoError(s.t, err)
	s.nc, err = s.srv.Connect()
	require.NoError(s.t, err)
}

func (s *store) open(partitions int) {
	s.t.Helper()
	var err error
	s.log, err = jetstream.Open(s.t.Context(), s.nc, &jetstream.Options{Partitions: partitions, Durability: "interval=1m"})
	require.NoError(s.t, err)
	s.folds, err = foldsjs.Open(s.t.Context(), s.nc, s.log, 1)
	require.NoError(s.t, err)
	s.states = snapshot.New(s.log, &snapshot.StoreOptions{Folds: s.folds})
}

func (s *store) stop() {
	if s.log != nil {
		s.log.Close()
		s.log = nil
	}
	if s.srv != nil {
		s.nc.Close()
		s.srv.Stop()
		s.srv = nil
	}
}

// append appends entries of another writer after the session's head.
func (s *store) append(session string, entries ...eventlog.Entry) uint64 {
	s.t.Helper()
	return logtest.AppendNext(s.t, s.log, session, entries...)
}

func base(session string) fact.Base {
	return fact.Base{SessionID: session, Timestamp: 1}
}

// create makes a session with n messages.
func (s *store) create(session string, n int) {
	s.t.Helper()
	s.append(session, logtest.Fact(session, &fact.SessionCreated{AgentType: "a", Base: base(session)}))
	for i := range n {
		s.append(session, logtest.Fact(session, &fact.UserMessage{Content: fmt.Sprint("<&> message ", i), Base: base(session)}))
	}
}

// trim makes retention remove the beginning of a session, which must have several
// segments and no records left in the log.
func (s *store) trim() map[string]uint64 {
	s.t.Helper()
	_, err := s.log.Purge(s.t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(s.t, err)
	done, err := s.states.Retain(s.t.Context(), snapshot.Retention{Drop: true})
	require.NoError(s.t, err)
	return done.Dropped
}

// take takes a backup.
func (s *store) take(o backup.Options) []byte {
	s.t.Helper()
	var out bytes.Buffer
	done, err := backup.Take(s.t.Context(), s.log, s.states, &out, o)
	require.NoError(s.t, err)
	_, verified, err := backup.Verify(s.t.Context(), bytes.NewReader(out.Bytes()), problems(s.t))
	require.NoError(s.t, err)
	require.Equal(s.t, done, verified)
	return out.Bytes()
}

// restore restores a backup and returns the trees that may have work.
func (s *store) restore(file []byte) (work []string) {
	s.t.Helper()
	var to *restore.Restorer
	_, err := backup.Restore(s.t.Context(), bytes.NewReader(file), func(h backup.Header) (backup.Target, error) {
		var err error
		if to, err = restore.Begin(s.t.Context(), s.nc, restore.Options{Ends: h.Ends, Placement: h.Placement}); err != nil {
			return backup.Target{}, err
		}
		folds, err := foldsjs.Open(s.t.Context(), s.nc, to, 1)
		return backup.Target{Sessions: to, Folds: folds, Work: func(agentType, session string) error {
			work = append(work, agentType+" "+session)
			return nil
		}}, err
	})
	require.NoError(s.t, err)
	require.NoError(s.t, to.Finish(s.t.Context()))
	require.NoError(s.t, to.Close())
	s.open(0)
	return work
}

// problems fails the test for a finding that is a problem.
func problems(t *testing.T) func(integrity.Finding) {
	return func(f integrity.Finding) {
		if !f.Code.IsNote() {
			t.Errorf("%+v", f)
		}
	}
}

// verify checks the store for damage.
func (s *store) verify() {
	s.t.Helper()
	sessions, err := s.log.VerifySubjects(s.t.Context(), problems(s.t))
	require.NoError(s.t, err)
	for _, session := range sessions {
		problem := problems(s.t)
		_, err := s.log.Verify(s.t.Context(), session, problem)
		require.NoError(s.t, err)
		require.NoError(s.t, s.states.Verify(s.t.Context(), session, problem))
	}
	require.NoError(s.t, s.log.VerifyStreams(s.t.Context(), problems(s.t)))
}

// copied returns a session as the log has it.
func (s *store) copied(session string) (floor uint64, all []eventlog.Copied) {
	s.t.Helper()
	floor, records, err := s.log.Copy(s.t.Context(), session, math.MaxUint64)
	require.NoError(s.t, err)
	for r, err := range records {
		require.NoError(s.t, err)
		r.Time = time.Time{} // a sealed record may have the time of its acknowledgement
		all = append(all, r)
	}
	return floor, all
}

func (s *store) sessions() (all []string) {
	s.t.Helper()
	for id, err := range s.log.Sessions(s.t.Context()) {
		require.NoError(s.t, err)
		all = append(all, id)
	}
	return all
}

func (s *store) state(session string) string {
	s.t.Helper()
	t, err := s.states.Head(s.t.Context(), session)
	require.NoError(s.t, err)
	raw, err := json.Marshal(t)
	require.NoError(s.t, err)
	return string(raw)
}

// publish stores a message without the log.
func (s *store) publish(subject string, data string) {
	s.t.Helper()
	js, err := natsjs.New(s.nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(s.t, err)
	_, err = js.Publish(s.t.Context(), subject, []byte(data))
	require.NoError(s.t, err)
}

var large = strings.Repeat("0123456789abcdef", 40<<10) // a blob in two parts
