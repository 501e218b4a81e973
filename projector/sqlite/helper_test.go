package sqlite

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(4)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// patience is how long a query may wait in tests: long enough on any machine.
const patience = 2 * time.Minute

// world is a log with read models.
type world struct {
	t      testing.TB
	log    *memory.Log
	states States
	opts   Options
	models *Models
}

func newWorld(t testing.TB) *world {
	t.Helper()
	log := memory.New()
	w := &world{t: t, log: log, states: snapshot.New(log, nil), opts: Options{
		Path: filepath.Join(t.TempDir(), "a folder", "read%20models?.db"), Patience: patience,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
	t.Cleanup(func() {
		w.close()
		log.Close()
	})
	return w
}

func (w *world) open() {
	w.close()
	w.models = Open(w.log, w.states, w.opts)
}

func (w *world) close() {
	if w.models != nil {
		w.models.Close()
		w.models = nil
	}
}

// append appends entries to a session.
func (w *world) append(session string, entries ...eventlog.Entry) uint64 {
	w.t.Helper()
	head, err := w.log.Head(w.t.Context(), session)
	if err != nil {
		require.ErrorIs(w.t, err, eventlog.ErrSessionNotFound)
	}
	last, err := w.log.Append(w.t.Context(), session, head, entries)
	require.NoError(w.t, err)
	return last
}

// asked returns an answer and requires that it is current.
func asked[A any](t testing.TB, ask func(context.Context) (readmodel.Answer[A], error)) A {
	t.Helper()
	a, err := ask(t.Context())
	require.NoError(t, err)
	require.Equal(t, readmodel.Fresh{Current: true}, a.Fresh)
	return a.Value
}

func (w *world) sessions(f readmodel.SessionFilter) readmodel.Page[readmodel.Session] {
	w.t.Helper()
	return asked(w.t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
		return w.models.Sessions(ctx, f)
	})
}

func (w *world) ids(f readmodel.SessionFilter) []string {
	w.t.Helper()
	ids := []string{}
	for _, s := range w.sessions(f).Items {
		ids = append(ids, s.SessionID)
	}
	return ids
}

func (w *world) search(text string) readmodel.Page[readmodel.Hit] {
	w.t.Helper()
	return asked(w.t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
		return w.models.Search(ctx, readmodel.SearchQuery{Text: text})
	})
}

func factOf(session, run string, f fact.Fact) eventlog.Entry {
	e, err := eventlog.NewFact(session, f, eventlog.Labels{Run: run})
	if err != nil {
		panic(err)
	}
	return e
}

func chunk(session, run, call string, c eventlog.Chunk) eventlog.Entry {
	e, err := eventlog.NewChunk(c, eventlog.Labels{Run: run, Call: call})
	if err != nil {
		panic(err)
	}
	return e
}

func factAt(session string, at int64) fact.Base {
	return fact.Base{SessionID: session, Timestamp: at}
}

// created is the first record of a session.
func created(session, agent, user string, tags ...string) eventlog.Entry {
	return factOf(session, "", &fact.SessionCreated{AgentType: agent, UserID: user, Tags: tags, Base: factAt(session, 1)})
}

func said(session, text string) eventlog.Entry {
	return factOf(session, "", &fact.UserMessage{Content: text, Base: factAt(session, 2)})
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
