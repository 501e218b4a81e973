package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestASavedMemoryIsFoundAtOnce(t *testing.T) {
	log := logmemory.New()
	m := newManager(t, memory.Options{
		Log: log, Now: func() time.Time { return time.UnixMilli(1_000) }, NewID: func() string { return "id-1" },
	})
	saved, err := m.Save(t.Context(), memory.Draft{
		Scope: ada, Content: "Ada is allergic to peanuts.", Tags: []string{"health"}, Metadata: object(`{"by":"a form"}`),
		Source: &fact.MemorySource{SessionID: "s", AgentType: "a"},
	})
	require.NoError(t, err)
	require.Equal(t, readmodel.Memory{
		ID: "id-1", Scope: ada, Content: "Ada is allergic to peanuts.", Tags: []string{"health"}, Metadata: object(`{"by":"a form"}`),
		Source: &fact.MemorySource{SessionID: "s", AgentType: "a"}, CreatedAt: 1_000, Sequence: 1,
		EmbeddingStatus: readmodel.EmbeddingComplete,
	}, saved)
	found := search(t, m, "Which allergies are there? Peanuts?")
	require.Equal(t, []memory.Hit{{Memory: saved, Score: 1}}, found.Hits)
	require.False(t, found.WordsOnly)
	require.True(t, found.Fresh.Current)
	listed, err := m.List(t.Context(), ada, readmodel.Paging{})
	require.NoError(t, err)
	require.Equal(t, []readmodel.Memory{saved}, listed.Value.Items)
	require.Equal(t, []string{"memory_saved", "memory_embedded"}, typesOf(t, log, ada))

	others, err := m.Search(t.Context(), memory.Query{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "bob"}, Text: "peanuts"})
	require.NoError(t, err)
	require.Empty(t, others.Hits, "a scope sees its own only")
}

func TestAKeyIsSavedOnce(t *testing.T) {
	for name, set := range map[string]func(*index){
		"":                  func(*index) {},
		"the index lags":    func(x *index) { x.behind = true },
		"the index is down": func(x *index) { x.down = readmodel.ErrUnavailable },
	} {
		t.Run(name, func(t *testing.T) {
			log := logmemory.New()
			first, second := &index{log: log}, &index{log: log}
			set(first)
			managers := []*memory.Manager{newManager(t, memory.Options{Log: log, Index: first}), newManager(t, memory.Options{Log: log, Index: second})}
			ids := make([]string, 20)
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					saved, err := managers[i%2].Save(t.Context(), memory.Draft{Scope: ada, Key: "call-1", Content: fmt.Sprint("Try ", i)})
					if err == nil {
						ids[i] = saved.ID
					}
				})
			}
			wg.Wait()
			count := map[string]int{}
			for _, typ := range typesOf(t, log, ada) {
				count[typ]++
			}
			require.Equal(t, 1, count["memory_saved"])
			for _, id := range ids {
				require.NotEmpty(t, id)
				require.Equal(t, ids[0], id)
			}
			again, err := managers[0].Save(t.Context(), memory.Draft{Scope: ada, Key: "call-1", Content: "Something else"})
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(again.Content, "Try "), "what is there is returned")
			require.Equal(t, readmodel.EmbeddingComplete, again.EmbeddingStatus)
			bob, err := managers[0].Save(t.Context(), memory.Draft{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "bob"}, Key: "call-1", Content: "x"})
			require.NoError(t, err)
			require.NotEqual(t, ids[0], bob.ID, "a key is of its scope")
		})
	}
}

// TestLostAnswers: a memory is in the log once, whatever becomes of requests.
func TestLostAnswers(t *testing.T) {
	for _, fault := range []logtest.Fault{logtest.LostAnswer, logtest.LostRequest, logtest.Duplicate, logtest.Delay, logtest.Reordered} {
		log := logmemory.New()
		faulty := &logtest.Faulty{Log: log}
		m := newManager(t, memory.Options{Log: faulty, Index: &index{log: log}})
		for range 2 { // a new log, and one that there is
			faulty.Next(fault, fault)
			save(t, m, "x")
			faulty.Release(t.Context())
		}
		require.Equal(t, []string{"memory_saved", "memory_embedded", "memory_saved", "memory_embedded"}, typesOf(t, log, ada), fault)
	}
}

// counting is a log that counts appends, each of which takes a while.
type counting struct {
	eventlog.Log
	appends atomic.Int64
}

func (c *counting) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	c.appends.Add(1)
	time.Sleep(time.Millisecond)
	return c.Log.Append(ctx, session, expected, entries)
}

// TestManySaveAtOnce: those who write one log take turns, so that each tries once
// more at most, and the index is asked once for each key.
func TestManySaveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &counting{Log: logmemory.New()}
		x := &meddled{index: &index{log: log}}
		m := newManager(t, memory.Options{Log: log, Index: x})
		save(t, m, "The first.")
		const n = 50
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if _, err := m.Save(t.Context(), memory.Draft{Scope: ada, Key: fmt.Sprint(i), Content: fmt.Sprint("Memory ", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Len(t, typesOf(t, log, ada), 2*(1+n))
		require.LessOrEqual(t, log.appends.Load(), int64(2*2*(1+n)), "of each memory and of each vector")
		require.EqualValues(t, n, x.asked.Load())
		done, err := m.ProcessUnembedded(t.Context())
		require.NoError(t, err)
		require.Zero(t, done)
	})
}

// TestATurnThatDoesNotCome: who waits for one is not kept after its time.
func TestATurnThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &counting{Log: logmemory.New()}
		m := newManager(t, memory.Options{Log: log})
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { save(t, m, "x") })
		synctest.Wait()
		_, err := m.Save(ctx, memory.Draft{Scope: ada, Content: "y"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		wg.Wait()
		require.Len(t, typesOf(t, log, ada), 2)
		save(t, m, "z")
	})
}

// meddled is an index after each of whose answers about a memory something
// happens.
type meddled struct {
	*index
	asked  atomic.Int64
	behind func() // nil: nothing
}

func (x *meddled) Memory(ctx context.Context, scope eventlog.MemoryScope, id, model string) (readmodel.Answer[readmodel.Memory], error) {
	a, err := x.index.Memory(ctx, scope, id, model)
	x.asked.Add(1)
	if x.behind != nil {
		x.behind()
	}
	return a, err
}

// TestWhatHappensWhileAMemoryIsSaved: what came after the index was asked counts,
// too.
func TestWhatHappensWhileAMemoryIsSaved(t *testing.T) {
	log := logmemory.New()
	other, x := newManager(t, memory.Options{Log: log}), &meddled{index: &index{log: log}}
	m := newManager(t, memory.Options{Log: log, Index: x})
	save(t, other, "The first.")
	saved := func(key string) readmodel.Memory {
		one, err := other.Save(t.Context(), memory.Draft{Scope: ada, Key: key, Content: "Another's."})
		require.NoError(t, err)
		return one
	}
	var want readmodel.Memory
	x.behind = func() { want = saved("a") }
	got, err := m.Save(t.Context(), memory.Draft{Scope: ada, Key: "a", Content: "Mine."})
	require.NoError(t, err)
	require.Equal(t, want, got, "what is there is returned")

	x.behind = func() { require.NoError(t, other.Forget(t.Context(), ada, saved("b").ID)) }
	_, err = m.Save(t.Context(), memory.Draft{Scope: ada, Key: "b", Content: "Mine."})
	require.ErrorIs(t, err, readmodel.ErrForgotten)

	x.behind = func() { saved("c") }
	_, err = m.Save(t.Context(), memory.Draft{Scope: ada, Key: "d", Content: "Mine, under another key."})
	require.NoError(t, err)

	x.behind = func() {
		_, err := other.Erase(t.Context(), ada)
		require.NoError(t, err)
	}
	_, err = m.Save(t.Context(), memory.Draft{Scope: ada, Key: "e", Content: "Mine, of a new life."})
	require.NoError(t, err)
	require.Equal(t, []string{"memory_saved", "memory_embedded"}, typesOf(t, log, ada))
}

// erasing is a log on which something happens when a memory is there and nobody
// knows yet.
type erasing struct {
	eventlog.Log
	happens func() // nil: nothing
}

func (e *erasing) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := e.Log.Append(ctx, session, expected, entries)
	if eventlog.IsMemoryLog(session) && e.happens != nil {
		e.happens()
		e.happens = nil
	}
	return last, err
}

func (e *erasing) Head(ctx context.Context, session string) (uint64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return e.Log.Head(ctx, session)
}

// TestASessionThatIsErasedWhileItSaves leaves no memories, also when the run that
// saves is stopped with it.
func TestASessionThatIsErasedWhileItSaves(t *testing.T) {
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: "s"}
	for _, key := range []string{"", "k"} {
		for _, stopped := range []bool{false, true} {
			log := &erasing{Log: logmemory.New()}
			m := newManager(t, memory.Options{Log: log})
			_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "hello")})
			require.NoError(t, err)
			_, err = m.Save(t.Context(), memory.Draft{Scope: scope, Content: "x"})
			require.NoError(t, err)
			ctx, stop := context.WithCancel(t.Context())
			log.happens = func() {
				_, err := log.Erase(t.Context(), "s")
				require.NoError(t, err)
				if stopped {
					stop()
				}
			}
			_, err = m.Save(ctx, memory.Draft{Scope: scope, Key: key, Content: "y"})
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			_, err = log.Head(t.Context(), scope.LogID())
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			_, err = m.Save(t.Context(), memory.Draft{Scope: scope, Key: key, Content: "z"})
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			_, err = log.Head(t.Context(), scope.LogID())
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			stop()
		}
	}
}

// replacing is a log on which something happens before a memory is there.
type replacing struct {
	eventlog.Log
	happens func() // nil: nothing
}

func (l *replacing) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if happens := l.happens; eventlog.IsMemoryLog(session) && happens != nil {
		l.happens = nil
		happens()
	}
	return l.Log.Append(ctx, session, expected, entries)
}

// TestASessionThatIsReplacedWhileItSaves: the next session of the id does not get
// the memory, and keeps its own.
func TestASessionThatIsReplacedWhileItSaves(t *testing.T) {
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: "s"}
	log := &replacing{Log: logmemory.New()}
	m, other := newManager(t, memory.Options{Log: log}), newManager(t, memory.Options{Log: log})
	begin := func() {
		_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "hello")})
		require.NoError(t, err)
		_, err = other.Save(t.Context(), memory.Draft{Scope: scope, Content: "A statement of this session."})
		require.NoError(t, err)
	}
	begin()
	log.happens = func() {
		for _, gone := range []string{"s", scope.LogID()} {
			_, err := log.Erase(t.Context(), gone)
			require.NoError(t, err)
		}
		begin()
	}
	_, err := m.Save(t.Context(), memory.Draft{Scope: scope, Content: "A secret of the first session."})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	found, err := m.List(t.Context(), scope, readmodel.Paging{Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []string{"A statement of this session."}, contentsOf(found.Value.Items, func(m readmodel.Memory) string { return m.Content }))
}

// lingering is a log whose erasures leave bytes.
type lingering struct{ *erasing }

func (l lingering) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	e, err := l.erasing.Erase(ctx, session)
	e.Pending = true
	return e, err
}

// TestAnErasureThatIsNotOver is for the operator to continue with.
func TestAnErasureThatIsNotOver(t *testing.T) {
	log := lingering{&erasing{Log: logmemory.New()}}
	var text bytes.Buffer
	m := newManager(t, memory.Options{Log: log, Logger: slog.New(slog.NewTextHandler(&text, nil))})
	_, err := log.Append(t.Context(), "ada-and-bob", 0, []eventlog.Entry{logtest.Text("ada-and-bob", "hello")})
	require.NoError(t, err)
	log.happens = func() {
		_, err := log.Erase(t.Context(), "ada-and-bob")
		require.NoError(t, err)
	}
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: "ada-and-bob"}
	_, err = m.Save(t.Context(), memory.Draft{Scope: scope, Content: "x"})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Contains(t, text.String(), "level=WARN")
	require.Contains(t, text.String(), "scope=session")
	require.NotContains(t, text.String(), "ada")
}

func TestWhatCannotBeSaved(t *testing.T) {
	log := logmemory.New()
	m := newManager(t, memory.Options{Log: log})
	for name, c := range map[string]struct {
		draft memory.Draft
		want  string
	}{
		"no scope":       {memory.Draft{Content: "x"}, "scope must be user, agent or session"},
		"nobody":         {memory.Draft{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser}, Content: "x"}, "id must not be empty"},
		"a strange one":  {memory.Draft{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "a\nb"}, Content: "x"}, "id must not hold control characters"},
		"nothing":        {memory.Draft{Scope: ada}, "content must not be empty"},
		"blank":          {memory.Draft{Scope: ada, Content: " \n"}, "content must not be empty"},
		"too much":       {memory.Draft{Scope: ada, Content: strings.Repeat("x", fact.MaxMemory+1)}, "memory_saved: content must be at most 16384 bytes, not 16385"},
		"no text":        {memory.Draft{Scope: ada, Content: "\xff"}, "memory_saved: content must be valid UTF-8"},
		"too many tags":  {memory.Draft{Scope: ada, Content: "x", Tags: strings.Fields(strings.Repeat("t ", fact.MaxMemoryTags+1))}, "memory_saved: tags must be at most 32"},
		"an empty tag":   {memory.Draft{Scope: ada, Content: "x", Tags: []string{""}}, "memory_saved: tags[0] must not be empty"},
		"metadata, list": {memory.Draft{Scope: ada, Content: "x", Metadata: object(`[]`)}, "memory_saved: metadata must be an object"},
		"metadata, much": {memory.Draft{Scope: ada, Content: "x", Metadata: object(`{"k":"` + strings.Repeat("x", fact.MaxMemoryMetadata-7) + `"}`)}, "memory_saved: metadata must be at most 16384 bytes, not 16385"},
	} {
		_, err := m.Save(t.Context(), c.draft)
		var invalid *eventlog.ValidationError
		require.ErrorAs(t, err, &invalid, name)
		require.EqualError(t, err, c.want, name)
	}
	for range log.Sessions(t.Context()) {
		require.Fail(t, "something was written")
	}
	saved, err := m.Save(t.Context(), memory.Draft{Scope: ada, Content: strings.Repeat("x", fact.MaxMemory)})
	require.NoError(t, err)
	require.Equal(t, readmodel.EmbeddingComplete, saved.EmbeddingStatus)
	long := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: strings.Repeat("u", eventlog.MaxID)}
	_, err = m.Save(t.Context(), memory.Draft{Scope: long, Content: "x"})
	require.NoError(t, err)
	_, intruder, _ := strings.Cut(long.LogID(), "/user/")
	_, err = m.Search(t.Context(), memory.Query{Scope: eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: intruder}, Text: "x"})
	require.EqualError(t, err, "id must not be # and a digest", "it would be another's log")
}

// TestAnEmbedderThatHangs: a save waits for its vector a while, and not more.
func TestAnEmbedderThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, memory.Options{Embedder: newEmbedder(func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		})})
		began := time.Now()
		saved, err := m.Save(t.Context(), memory.Draft{Scope: ada, Content: "Ada likes tea."})
		require.NoError(t, err)
		require.Equal(t, readmodel.EmbeddingPending, saved.EmbeddingStatus)
		require.Equal(t, memory.SaveTimeout, time.Since(began))
	})
}

// silent is a log that never answers who writes a vector.
type silent struct{ eventlog.Log }

func (l silent) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if entries[0].Type == (*fact.MemoryEmbedded)(nil).Type() {
		<-ctx.Done()
		return 0, eventlog.ErrOutcomeUnknown
	}
	return l.Log.Append(ctx, session, expected, entries)
}

// TestAVectorThatCannotBeWritten keeps no save waiting for longer than one that
// can't be computed: not its own, nor others of its scope.
func TestAVectorThatCannotBeWritten(t *testing.T) {
	for name, executor := range map[string]func() memory.Executor{
		"inline":     memory.Inline,
		"background": func() memory.Executor { return memory.Background(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := silent{logmemory.New()}
				m := newManager(t, memory.Options{Log: log, Executor: executor()})
				for _, content := range []string{"Ada likes tea.", "Ada likes milk."} {
					began := time.Now()
					saved, err := m.Save(t.Context(), memory.Draft{Scope: ada, Content: content})
					require.NoError(t, err)
					require.Equal(t, readmodel.EmbeddingPending, saved.EmbeddingStatus)
					require.LessOrEqual(t, time.Since(began), memory.SaveTimeout)
					synctest.Wait()
				}
				require.NoError(t, m.Shutdown(t.Context()))
				require.Equal(t, []string{"memory_saved", "memory_saved"}, typesOf(t, log, ada))
			})
		})
	}
}

func TestALogThatRefuses(t *testing.T) {
	m := newManager(t, memory.Options{Log: refusing{logmemory.New()}})
	_, err := m.Save(t.Context(), memory.Draft{Scope: ada, Content: "x"})
	require.ErrorIs(t, err, eventlog.ErrRefused)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone home"))
	_, err = newManager(t, memory.Options{}).Save(ctx, memory.Draft{Scope: ada, Content: "x"})
	require.EqualError(t, err, "gone home")
}

type refusing struct{ eventlog.Log }

func (refusing) Append(context.Context, string, uint64, []eventlog.Entry) (uint64, error) {
	return 0, eventlog.ErrRefused
}
