package integration_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// embedder is an embeddings endpoint that can be out.
type embedder struct {
	url string
	out atomic.Bool

	mu    sync.Mutex
	given map[string]int // how often a text was given its vector
}

func newEmbedder(t *testing.T, vector func(text string) []float32) *embedder {
	t.Helper()
	e := &embedder{given: map[string]int{}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if e.out.Load() {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		type datum struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		var out struct {
			Data []datum `json:"data"`
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		for i, text := range in.Input {
			out.Data = append(out.Data, datum{i, vector(text)})
			e.given[text]++
		}
		json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(s.Close)
	e.url = s.URL + "/v1"
	return e
}

// times is how often the embedder gave a text its vector.
func (e *embedder) times(text string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.given[text]
}

// topics are words that mean something near.
var topics = []string{"dog puppy", "tea beverage", "tram commute", "fern plant", "sister sibling"}

// meaning is a vector with a number for each topic, and one for all others.
func meaning(text string) []float32 {
	v := make([]float32, len(topics)+1)
	v[len(topics)] = 0.01
	for i, words := range topics {
		for word := range strings.FieldsSeq(words) {
			if strings.Contains(text, word) {
				v[i]++
			}
		}
	}
	return v
}

// The embedder fails in the middle. Everything that users say is stored and found by its
// words, also after a crash; once the embedder works again, all memories have their
// vectors, and each was computed once.
func TestAnEmbeddingOutageLosesNothing(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	e := newEmbedder(t, meaning)
	file := rememberers(t, `
memory: {embedder: {provider: openai, name: some-embedder, apiKey: none, baseURL: "`+e.url+`"}, executor: background, processEvery: 0s}`)
	d := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated", "--data-dir", filepath.Join(t.TempDir(), "data"))
	d.start()
	finds := func(question string, wordsOnly bool, want ...string) {
		t.Helper()
		require.Eventually(t, func() bool { // a machine that is busy may be late with a question's vector, too
			found, ok := d.memories("scope=user&id=ada&q=" + question)
			var texts []string
			for _, m := range found.Items {
				texts = append(texts, m.Content)
			}
			return ok && found.WordsOnly == wordsOnly && slices.Equal(texts, want)
		}, time.Minute, 10*time.Millisecond, question)
	}
	type statuses = map[string]readmodel.EmbeddingStatus
	const (
		dog    = "Ada has a dog called Byron."
		tea    = "Ada drinks green tea."
		tram   = "Ada takes the tram to work."
		key    = "Her key lies under the fern."
		sister = "She has a sister in Oslo."
	)
	d.tell("monday", "ada", dog)
	d.knows("ada", statuses{dog: complete})
	finds("puppy", false, dog)

	// From now on the embedder is out. Ada continues with what she was telling, and
	// notices nothing.
	e.out.Store(true)
	d.tell("monday", "ada", tea)
	d.tell("tuesday", "ada", tram)
	helixd(t, "memories", "save", "--user", "ada", key, "--server", d.url)
	during := statuses{dog: complete, tea: pending, tram: pending, key: pending}
	d.knows("ada", during)
	finds("tea", true, tea)
	finds("beverage", true) // what it means nobody knows now
	require.Equal(t, "I remember: "+tea, d.say("wednesday", "barkeeper", "ada", "Some tea, please."))
	status, answer := d.post("/memories/process", map[string]any{})
	require.Equal(t, http.StatusServiceUnavailable, status, "%v", answer)
	require.Equal(t, "UNAVAILABLE", answer["code"])

	// As if that was not enough, the daemon is killed.
	d.kill()
	d.start()
	d.knows("ada", during)
	finds("tea", true, tea)

	// The embedder is back, and an operator does not want to wait.
	e.out.Store(false)
	require.Equal(t, "3 without a vector, 3 have one now, 0 failed\n", helixd(t, "memories", "process", "--server", d.url))
	after := statuses{dog: complete, tea: complete, tram: complete, key: complete}
	d.knows("ada", after)
	finds("beverage", false, tea)
	finds("commute", false, tram)
	finds("plant", false, key)
	require.Equal(t, "I remember: "+tram, d.say("thursday", "barkeeper", "ada", "Is my tram on time?"))
	for text := range after {
		require.Equal(t, 1, e.times(text), text)
	}

	// The next outage fixes itself.
	d.stop()
	d.env = append(d.env, "HELIX_MEMORY_PROCESS_EVERY=200ms")
	e.out.Store(true)
	d.start()
	d.tell("friday", "ada", sister)
	again := maps.Clone(after)
	again[sister] = pending
	d.knows("ada", again)
	e.out.Store(false)
	again[sister] = complete
	d.knows("ada", again)
	finds("sibling", false, sister)
}
