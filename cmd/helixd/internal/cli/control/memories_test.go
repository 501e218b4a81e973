package control

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestMemoriesCommands(t *testing.T) {
	ada := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "ada"}
	tea := readmodel.Memory{ID: "m", Scope: ada, Content: "green\ntea", CreatedAt: 1767225600000, EmbeddingStatus: readmodel.EmbeddingPending}
	found := api.FoundMemories{Listing: clitest.Listing(clitest.Current, api.FoundMemory{Memory: tea}), WordsOnly: true}
	const table = "MEMORY  SAVED                 VECTOR   TEXT\nm       2026-01-01T00:00:00Z  pending  green tea\n"
	for name, c := range map[string]struct {
		args                      []string
		answer                    any
		method, asked, body, said string
		notes                     string
	}{
		"list": {
			args: []string{"list", "--user", "ada", "--limit", "1", "--offset", "2"}, answer: found,
			method: "GET", asked: "/memories?id=ada&limit=1&offset=2&scope=user", said: table,
			notes: "1 of 9 are shown; --offset 3 shows more\nthe embedder does not answer: only memories with words of the question are shown\n",
		},
		"search": {
			args:   []string{"search", "--agent", "clerk", "Which tea?"},
			answer: api.FoundMemories{Listing: api.Listing[api.FoundMemory]{Page: api.Page[api.FoundMemory]{Items: found.Items}, Fresh: clitest.Current}},
			method: "GET", asked: "/memories?id=clerk&limit=10&q=Which+tea%3F&scope=agent", said: table,
		},
		"save": {
			args: []string{"save", "--session", "s", "They like tea.", "--tag", "drinks", "--key", "k"}, answer: tea,
			method: "POST", asked: "/memories", body: `{"scope":"session","id":"s","content":"They like tea.","tags":["drinks"]}`, said: "m\n",
		},
		"forget": {
			args: []string{"forget", "--user", "ada", "a/m"}, answer: api.ForgottenMemory{MemoryID: "a/m"},
			method: "DELETE", asked: "/memories/a%2Fm?id=ada&scope=user", said: "a/m is forgotten\n",
		},
		"erase": {
			args: []string{"erase", "--user", "ada", "--yes"}, answer: api.ErasedMemories{Scope: ada},
			method: "DELETE", asked: "/memories?id=ada&scope=user", said: "user ada: erased\n",
		},
		"erase without waiting": {
			args: []string{"erase", "--user", "ada", "--yes", "--no-wait"}, answer: api.ErasedMemories{Scope: ada, Pending: true},
			method: "DELETE", asked: "/memories?id=ada&scope=user", said: "user ada: being erased: bytes may be left\n",
		},
		"process": {
			args: []string{"process"}, answer: map[string]int{"found": 3, "embedded": 2, "failed": 1},
			method: "POST", asked: "/memories/process", body: `{}`, said: "3 without a vector, 2 have one now, 1 failed\n",
		},
		"as JSON": {
			args: []string{"forget", "--user", "ada", "m", "--json"}, answer: api.ForgottenMemory{MemoryID: "m"},
			method: "DELETE", asked: "/memories/m?id=ada&scope=user", said: "{\"memoryId\":\"m\"}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var method, asked, body, key string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw, err := io.ReadAll(r.Body)
				require.NoError(t, err)
				method, asked, body, key = r.Method, r.URL.RequestURI(), string(raw), r.Header.Get("Idempotency-Key")
				_ = json.NewEncoder(w).Encode(c.answer)
			}))
			defer srv.Close()
			out, errs, err := clitest.Run[Commands](t, "", append([]string{"memories"}, append(c.args, "--server", srv.URL)...)...)
			require.NoError(t, err)
			require.Equal(t, c.method, method)
			require.Equal(t, c.asked, asked)
			require.Equal(t, c.said, out)
			require.Equal(t, c.notes, errs)
			if c.body == "" {
				require.Empty(t, body)
			} else {
				require.JSONEq(t, c.body, body)
			}
			require.Equal(t, name == "save", key == "k")
		})
	}
}

// Whose memories must be said, once.
func TestMemoriesOfNobody(t *testing.T) {
	for _, args := range [][]string{{"list"}, {"list", "--user", "a", "--agent", "b"}, {"erase", "--yes"}, {"erase", "--user", "a"}, {"save", "x"}} {
		parser, err := kong.New(new(Commands))
		require.NoError(t, err)
		_, err = parser.Parse(append([]string{"memories"}, args...))
		require.Error(t, err, args)
	}
}
