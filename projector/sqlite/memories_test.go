package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

const embedderA, embedderB = "embedder-a", "embedder-b"

func userScope(user string) eventlog.MemoryScope {
	return eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: user}
}

func memorySaved(s eventlog.MemoryScope, id, content string, tags ...string) eventlog.Entry {
	return factOf(s.LogID(), "", &fact.MemorySaved{MemoryID: id, Content: content, Tags: tags, Base: factAt(s.LogID(), 7)})
}

func memoryEmbedded(s eventlog.MemoryScope, id, model string, vector ...float32) eventlog.Entry {
	return factOf(s.LogID(), "", &fact.MemoryEmbedded{MemoryID: id, Model: model, Vector: vector, Base: factAt(s.LogID(), 8)})
}

func memoryForgotten(s eventlog.MemoryScope, id string) eventlog.Entry {
	return factOf(s.LogID(), "", &fact.MemoryForgotten{MemoryID: id, Base: factAt(s.LogID(), 9)})
}

func (w *world) candidates(q readmodel.MemoryQuery) readmodel.MemoryCandidates {
	w.t.Helper()
	return candidatesOf(w.t, w.models, q)
}

func candidatesOf(t testing.TB, m *Models, q readmodel.MemoryQuery) readmodel.MemoryCandidates {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 10
	}
	return asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.MemoryCandidates], error) {
		return m.Candidates(ctx, q)
	})
}

func (w *world) memories(s eventlog.MemoryScope) []readmodel.Memory {
	w.t.Helper()
	return memoriesOf(w.t, w.models, s)
}

func memoriesOf(t testing.TB, m *Models, s eventlog.MemoryScope) []readmodel.Memory {
	t.Helper()
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.MemoryPage], error) {
		return m.ListMemories(ctx, s, embedderA, readmodel.Paging{Limit: readmodel.MaxPage})
	})
	require.Equal(t, len(page.Items), page.Total)
	return page.Items
}

func idsOf(ranked []readmodel.RankedMemory) []string {
	ids := []string{}
	for _, r := range ranked {
		ids = append(ids, r.ID)
	}
	return ids
}

// A memory is found by its words as soon as it is saved, and by its meaning as soon as
// its vector is in the log, in its scope only.
func TestMemoriesAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	alice, bob := userScope("alice"), userScope("bob")
	source := &fact.MemorySource{SessionID: "s", AgentType: "a", RunID: "r", ToolCallID: "c"}
	at := w.append(alice.LogID(), factOf(alice.LogID(), "", &fact.MemorySaved{
		MemoryID: "m1", Content: "Prefers Café crème to tea", Tags: []string{"drinks"}, Metadata: json.RawMessage(`{"sure":true}`),
		Source: source, Base: factAt(alice.LogID(), 7),
	}))
	want := readmodel.Memory{
		ID: "m1", Scope: alice, Content: "Prefers Café crème to tea", Tags: []string{"drinks"}, Metadata: json.RawMessage(`{"sure":true}`),
		Source: source, CreatedAt: 7, Sequence: at, EmbeddingStatus: readmodel.EmbeddingPending,
	}
	w.append(bob.LogID(), memorySaved(bob, "m1", "Prefers tea"))
	for _, text := range []string{"which COFFEE, or cafe?", "drinks", "creme!"} {
		got := w.candidates(readmodel.MemoryQuery{Scope: alice, Text: text, Model: embedderA, Vector: []float32{1, 0}})
		require.Len(t, got.ByWords, 1, text)
		require.Equal(t, want, got.ByWords[0].Memory)
		require.Positive(t, got.ByWords[0].Score)
		require.Empty(t, got.ByMeaning)
	}
	head := w.append(alice.LogID(), memoryEmbedded(alice, "m1", embedderA, 0.6, 0.8))
	want.EmbeddingStatus = readmodel.EmbeddingComplete
	got := w.candidates(readmodel.MemoryQuery{Scope: alice, Model: embedderA, Vector: []float32{1, 0}})
	require.Equal(t, head, got.Head)
	require.Empty(t, got.ByWords)
	require.Len(t, got.ByMeaning, 1)
	require.Equal(t, want, got.ByMeaning[0].Memory)
	require.InDelta(t, 0.6, got.ByMeaning[0].Score, 1e-6)
	one := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Memory], error) {
		return w.models.Memory(ctx, alice, "m1", embedderA)
	})
	require.Equal(t, want, one)
	require.Equal(t, []readmodel.Memory{want}, w.memories(alice))

	require.Empty(t, w.candidates(readmodel.MemoryQuery{Scope: alice, Model: embedderB, Vector: []float32{1, 0}}).ByMeaning, "another model's space")
	require.Empty(t, w.candidates(readmodel.MemoryQuery{Scope: alice, Model: embedderA, Vector: []float32{1, 0, 0}}).ByMeaning, "of other dimensions")
	require.Empty(t, w.candidates(readmodel.MemoryQuery{Scope: alice, Text: "coffee", Exclude: []string{"m1"}}).ByWords)
	got = w.candidates(readmodel.MemoryQuery{Scope: alice, Text: "tea", Model: embedderA, Vector: []float32{1, 0}, Exclude: []string{"m1"}})
	require.Empty(t, got.ByWords)
	require.Empty(t, got.ByMeaning)
	require.Equal(t, []string{"m1"}, idsOf(w.candidates(readmodel.MemoryQuery{Scope: bob, Text: "tea"}).ByWords))
	require.Empty(t, w.candidates(readmodel.MemoryQuery{Scope: userScope("nobody"), Text: "tea", Model: embedderA, Vector: []float32{1, 0}}))
	require.Empty(t, w.memories(userScope("nobody")))
	for _, id := range []string{"m2", ""} {
		_, err := w.models.Memory(t.Context(), alice, id, embedderA)
		require.ErrorIs(t, err, readmodel.ErrNoMemory)
	}
	for _, limit := range []int{-1, 0, readmodel.MaxPage + 1} {
		_, err := w.models.Candidates(t.Context(), readmodel.MemoryQuery{Scope: alice, Text: "tea", Limit: limit})
		var bad *readmodel.QueryError
		require.ErrorAs(t, err, &bad)
	}
}

// Rare words count more than common ones, a memory with more of the words is ranked
// before one with fewer, and of equal memories the newest is first.
func TestRankingByWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	s := userScope("u")
	for i := range 20 {
		w.append(s.LogID(), memorySaved(s, fmt.Sprint("common", i), "the user likes the colour number "+fmt.Sprint(i)))
	}
	w.append(s.LogID(), memorySaved(s, "one", "the user owns a tandem"))
	w.append(s.LogID(), memorySaved(s, "both", "the user likes the tandem"))
	w.append(s.LogID(), memorySaved(s, "long", "the user likes the tandem "+strings.Repeat("and many other things besides ", 20)))
	got := idsOf(w.candidates(readmodel.MemoryQuery{Scope: s, Text: "Likes the tandem?"}).ByWords)
	require.Equal(t, []string{"both", "one", "long", "common19", "common18"}, got[:5])
}

// A rare word does not keep memories that have the other words from being found, even if
// more memories have one of the words than are looked up.
func TestARareWordAndAFrequentOne(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	w := newWorld(t)
	s := userScope("u")
	entries := []eventlog.Entry{memorySaved(s, "zoe", "Zoe")}
	for i := range maxPlaces + 1 {
		entries = append(entries, memorySaved(s, fmt.Sprint(i), "meeting"))
	}
	for batch := range slices.Chunk(entries, 500) {
		w.append(s.LogID(), batch...)
	}
	w.open()
	got := idsOf(w.candidates(readmodel.MemoryQuery{Scope: s, Text: "a meeting with Zoe", Limit: 3}).ByWords)
	require.Equal(t, []string{"zoe", fmt.Sprint(maxPlaces), fmt.Sprint(maxPlaces - 1)}, got)
}

// Excluded memories take no place in the ranking: the next best ones do.
func TestWhatIsNotWanted(t *testing.T) {
	t.Parallel()
	n := 18 * roughLeast
	if !testkit.InFull() {
		n = 4 * roughLeast
	}
	w, s, vectors := large(t, n)
	ask := func(without []string) readmodel.MemoryCandidates {
		return w.candidates(readmodel.MemoryQuery{
			Scope: s, Text: "memory", Model: embedderA, Vector: vectors[7], Limit: 10, Exclude: append([]string{"nothing of the kind"}, without...),
		})
	}
	var words, meaning []string
	for range 3 {
		got := ask(slices.Concat(words, meaning))
		for _, id := range append(idsOf(got.ByWords), idsOf(got.ByMeaning)...) {
			require.NotContains(t, words, id)
			require.NotContains(t, meaning, id)
		}
		words, meaning = append(words, idsOf(got.ByWords)...), append(meaning, idsOf(got.ByMeaning)...)
	}
	require.Len(t, words, 30)
	require.Len(t, meaning, 30)
	require.Equal(t, "m7", meaning[0])
	var without []string
	for _, i := range exact(vectors, vectors[7], n/2) {
		without = append(without, fmt.Sprint("m", i))
	}
	got := ask(without)
	require.Len(t, got.ByMeaning, 10)
	require.Len(t, got.ByWords, 10)
	for _, id := range append(idsOf(got.ByWords), idsOf(got.ByMeaning)...) {
		require.NotContains(t, without, id)
	}
}

// A person's text is never syntax.
func TestAQuestionIsAnyText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	s := userScope("u")
	w.append(s.LogID(), memorySaved(s, "m", "tandem AND NOT near"))
	for text, found := range map[string]int{
		"": 0, " ": 0, `"`: 0, `tandem"`: 1, `tandem" OR "1xnone`: 1, "terms:tandem*": 1, "^tandem + NEAR(x)": 1, "tand*": 0, "\x00": 0, "tandem\x00": 1,
		"\xff\xfe tandem": 1, "'; DROP TABLE memories; --": 0, strings.Repeat("word ", 20_000) + "tandem": 1, "😀": 0, "1xtandem": 0, "not": 1,
	} {
		require.Len(t, w.candidates(readmodel.MemoryQuery{Scope: s, Text: text}).ByWords, found, "%.40q", text)
	}
}

// A memory is found however its words are written.
func TestFormsOfAWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	s := userScope("u")
	for asked, saved := range map[string]string{
		"pho?": "Ada eats phở", "елка": "ёлку, ёлка", "Ча\u0438\u0306": "чай", "ΤΣΑΪ": "τσάι", "ΔΡΟΜΟΣ": "ο δρόμος", "ｔｅａ": "tea",
		"lodz": "Łódź", "ISTANBUL": "ıstanbul", "서울": "서울", "가방": "\u1100\u1161방", "မြန်မာ": "ကမြန်မာ", "東京": "東京都",
	} {
		w.append(s.LogID(), memorySaved(s, saved, saved))
		require.Equal(t, []string{saved}, idsOf(w.candidates(readmodel.MemoryQuery{Scope: s, Text: asked}).ByWords), asked)
	}
}

// A memory scope is not a session, and its facts are not texts of one.
func TestAMemoryScopeIsNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := userScope("u")
	w.append(s.LogID(), memorySaved(s, "m", "remarkable"), memoryEmbedded(s, "m", embedderA, 1))
	w.append("s", created("s", "a", "u"))
	w.open()
	require.Equal(t, []string{"s"}, w.ids(readmodel.SessionFilter{}))
	require.Zero(t, w.search("remarkable").Total)
	require.Len(t, w.memories(s), 1)
	for id, err := range w.models.Expiring(t.Context(), time.Now().Add(time.Hour)) {
		t.Fatal(id, err)
	}
}

// A record that can't be decoded is listed, and does not affect others.
func TestPoisonInAMemoryScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	s := userScope("u")
	w.append(s.LogID(), memorySaved(s, "m", "first"))
	at := w.append(s.LogID(), eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "memory_saved"}, Payload: []byte("{")})
	w.append(s.LogID(), memoryEmbedded(s, "m", embedderA, 0, 0), memoryEmbedded(s, "nothing", embedderA, 1))
	w.append(s.LogID(), memorySaved(s, "n", "second"))
	require.Len(t, w.memories(s), 2)
	require.Empty(t, w.candidates(readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: []float32{0, 1}}).ByMeaning, "it has no direction")
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
		return w.models.Parked(ctx, readmodel.ParkedFilter{})
	})
	require.Len(t, page.Items, 1)
	require.Equal(t, at, page.Items[0].Sequence)
}

// Pending memories of all scopes are paged through by scope and sequence.
func TestPendingMemories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	var want []string
	for _, user := range []string{"a", "b", "c"} {
		s := userScope(user)
		for i := range 5 {
			id := fmt.Sprint(user, i)
			w.append(s.LogID(), memorySaved(s, id, "x"))
			if i%2 == 0 || user == "b" {
				w.append(s.LogID(), memoryEmbedded(s, id, embedderA, 1))
			} else {
				want = append(want, id)
			}
		}
	}
	long := userScope(strings.Repeat("long", 100))
	w.append(long.LogID(), memorySaved(long, "l", "x"))
	want = append([]string{"l"}, want...) // its log's name is a digest
	var got []string
	after := readmodel.PendingCursor{}
	for {
		page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Pending], error) {
			return w.models.PendingMemories(ctx, embedderA, after, 2)
		})
		if len(page.Items) == 0 {
			break
		}
		for _, m := range page.Items {
			got = append(got, m.ID)
			require.Equal(t, readmodel.EmbeddingPending, m.EmbeddingStatus)
			after = readmodel.PendingCursor{Log: m.Scope.LogID(), Sequence: m.Sequence}
			head, err := w.log.Head(t.Context(), after.Log)
			require.NoError(t, err, "it can be written to")
			require.Equal(t, head, page.Heads[after.Log])
		}
	}
	require.Equal(t, want, got)
	require.Len(t, asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Pending], error) {
		return w.models.PendingMemories(ctx, embedderB, readmodel.PendingCursor{}, 100)
	}).Items, 16)
}

// A forgotten memory leaves no byte in any file except its id; an erased scope leaves not
// even ids.
func TestForgettingRemovesTheBytes(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(w *world, s eventlog.MemoryScope, ids []string){
		"forgotten": func(w *world, s eventlog.MemoryScope, ids []string) {
			for _, id := range ids {
				w.append(s.LogID(), memoryForgotten(s, id))
			}
		},
		"erased": func(w *world, s eventlog.MemoryScope, _ []string) {
			_, err := w.log.Erase(w.t.Context(), s.LogID())
			require.NoError(w.t, err)
		},
		"erased and begun again": func(w *world, s eventlog.MemoryScope, _ []string) {
			_, err := w.log.Erase(w.t.Context(), s.LogID())
			require.NoError(w.t, err)
			w.append(s.LogID(), memorySaved(s, "new", "other words"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s, kept := userScope("u"), userScope("kept")
			const secret, identity = "unmistakable", "its-own-id"
			vector := make([]float32, 300)
			for i := range vector {
				vector[i] = float32(i) + 0.123
			}
			traces := []string{secret, string(fact.Vector(vector[100:104]).Bytes())}
			if name != "forgotten" {
				traces = append(traces, identity)
			}
			memories := 300
			if testkit.Raced {
				memories = 20
			}
			var ids []string
			for i := range memories {
				id := fmt.Sprintf("%s-%d", identity, i)
				ids = append(ids, id)
				w.append(s.LogID(), memorySaved(s, id, fmt.Sprintf("%s%d %s", secret, i, strings.Repeat("other words ", 20)), "tag-"+secret),
					memoryEmbedded(s, id, embedderA, vector...))
			}
			w.append(kept.LogID(), memorySaved(kept, "m", "other words"), memoryEmbedded(kept, "m", embedderA, 1, 2))
			w.open()
			question := readmodel.MemoryQuery{Scope: s, Text: secret, Model: embedderA, Vector: vector}
			require.Len(t, w.candidates(question).ByMeaning, 10)
			for _, trace := range traces {
				require.True(t, inFiles(t, w, trace))
			}
			w.append(s.LogID(), memoryForgotten(s, ids[0]))
			require.Len(t, w.candidates(question).ByMeaning, 10)
			remove(w, s, ids)
			found := w.candidates(question)
			require.Empty(t, found.ByMeaning)
			require.Empty(t, found.ByWords)
			require.Len(t, w.candidates(readmodel.MemoryQuery{Scope: kept, Text: "other"}).ByWords, 1)
			require.Eventually(t, func() bool {
				return !slices.ContainsFunc(traces, func(trace string) bool { return inFiles(t, w, trace) })
			}, time.Minute, 10*time.Millisecond)
			requireSound(w)
			for _, trace := range traces {
				require.False(t, inFiles(t, w, trace))
			}
		})
	}
}
