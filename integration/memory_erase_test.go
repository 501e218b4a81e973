package integration_test

import (
	"crypto/sha256"
	"encoding/base64"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// fingerprint is a vector that only one text has: its digest, in signs. It has
// length 1, so that it is stored as it is.
func fingerprint(text string) []float32 {
	digest := sha256.Sum256([]byte(text))
	v := make([]float32, 64)
	for i := range v {
		v[i] = 0.125
		if digest[i/8]>>(i%8)&1 == 1 {
			v[i] = -0.125
		}
	}
	return v
}

// A user wants to be forgotten. Behind the erasure of the user's memories no
// file of the daemon holds a text or a vector of one, and after that of the
// conversations nothing of what was said there.
func TestAUserIsErasedDownToTheFiles(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	e := newEmbedder(t, fingerprint)
	file := rememberers(t, `
memory: {embedder: {provider: openai, name: some-embedder, apiKey: none, baseURL: "`+e.url+`"}}`)
	data := filepath.Join(t.TempDir(), "data")
	d := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated", "--data-dir", data)
	d.start()
	const (
		tea    = "Ada drinks verbena tea without sugar."
		key    = "The spare key lies under the fern."
		coffee = "Bob likes his coffee black."
	)
	vectorOf := func(memory string) string { return string(fact.Vector(fingerprint(memory)).Bytes()) }
	texts := func(memory string) []string { return filesWith(t, data, memory) }
	vectors := func(memory string) []string { // as the index has them, and as the log has
		return append(filesWith(t, data, vectorOf(memory)), filesWith(t, data, base64.StdEncoding.EncodeToString([]byte(vectorOf(memory))))...)
	}
	gone := func(from func(memory string) []string, memory string) { // the index follows the log
		t.Helper()
		var found []string
		require.Eventually(t, func() bool { found = from(memory); return len(found) == 0 }, 2*time.Minute, 20*time.Millisecond, "%s: %v", memory, found)
	}

	// Ada has told a waiter something, of which a barkeeper was reminded, and
	// something else was saved for her. Bob has a memory, too.
	d.tell("lunch", "ada", tea)
	d.tell("breakfast", "bob", coffee)
	helixd(t, "memories", "save", "--user", "ada", key, "--server", d.url)
	d.knows("ada", map[string]readmodel.EmbeddingStatus{tea: complete, key: complete})
	d.knows("bob", map[string]readmodel.EmbeddingStatus{coffee: complete})
	require.Equal(t, "I remember: "+tea, d.say("evening", "barkeeper", "ada", "Some verbena, please."))
	for _, memory := range []string{tea, key} {
		require.NotEmpty(t, texts(memory))
		require.Greater(t, len(vectors(memory)), 1, "the log's and the index's")
	}

	// Her memories are erased, all of them, and nobody else's.
	require.Equal(t, "user ada: erased\n", helixd(t, "memories", "erase", "--user", "ada", "--yes", "--server", d.url))
	d.knows("ada", map[string]readmodel.EmbeddingStatus{})
	gone(texts, key)
	gone(vectors, key)
	gone(vectors, tea)
	require.Equal(t, "I remember: ", d.say("night", "barkeeper", "ada", "Some verbena, please."))
	require.Equal(t, "I remember: "+coffee, d.say("noon", "barkeeper", "bob", "A coffee, please."))

	// What was said in conversations is the conversations', until they are erased.
	require.NotEmpty(t, texts(tea))
	for _, session := range []string{"lunch", "evening"} {
		require.Contains(t, helixd(t, "erase", session, "--yes", "--server", d.url, "--json"), `"pending":false`)
	}
	gone(texts, tea)

	// A clean end brings nothing back, and the rest is whole.
	d.stop()
	for _, memory := range []string{tea, key} {
		require.Empty(t, texts(memory))
		require.Empty(t, vectors(memory))
		require.NotContains(t, d.logs.String(), memory)
	}
	require.NotEmpty(t, texts(coffee))
	helixd(t, "verify", "--data-dir", data)
}
