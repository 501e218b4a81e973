package control

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
)

// An erasure is asked for until the daemon says that it is done, or knows
// nothing of the session, or the memories, any more.
func TestErase(t *testing.T) {
	const (
		pending = `{"sessionId":"s","pending":true,"forks":[]}` + "\n"
		done    = `{"sessionId":"s","pending":false,"forks":[]}` + "\n"
		waits   = `{"sessionId":"s","pending":true,"waitsFor":"node2","forks":[]}` + "\n"
		left    = `{"sessionId":"s","pending":true,"left":"ask the operator","forks":[]}` + "\n"
		forked  = `{"sessionId":"s","pending":false,"forks":["a","b"]}`
		gone    = `{"error":"not found","code":"NOT_FOUND"}`

		memoriesPending = `{"scope":{"kind":"user","id":"ada"},"pending":true}` + "\n"
		memoriesDone    = `{"scope":{"kind":"user","id":"ada"},"pending":false}` + "\n"
	)
	words := []string{"erase", "s"}
	session, memories := []string{"erase", "s", "--json"}, []string{"memories", "erase", "--user", "ada"}
	for name, c := range map[string]struct {
		command    []string
		answers    []string
		said, fail string
		args       []string
	}{
		"at once":              {command: session, answers: []string{done}, said: done},
		"at last":              {command: session, answers: []string{pending, done}, said: done},
		"when others are done": {command: session, answers: []string{waits, waits, done}, said: done},
		"as far as it goes":    {command: session, answers: []string{waits, left}, said: left},
		"without waiting":      {command: session, answers: []string{pending}, said: pending, args: []string{"--no-wait"}},
		"elsewhere":            {command: session, answers: []string{pending, gone}, said: pending},
		"unknown":              {command: session, answers: []string{gone}, fail: "not found (NOT_FOUND)"},

		"in words":             {command: words, answers: []string{done}, said: "s is erased\n"},
		"in words, waiting":    {command: words, answers: []string{waits}, said: "s is being erased: bytes may be left until this is done: node2\n", args: []string{"--no-wait"}},
		"in words, left":       {command: words, answers: []string{left}, said: "s is being erased: bytes are left: ask the operator\n"},
		"in words, with forks": {command: words, answers: []string{forked}, said: "s is erased; these forks keep what they took: a, b\n"},

		"memories, at last":   {command: memories, answers: []string{memoriesPending, memoriesDone}, said: "user ada: erased\n"},
		"memories, elsewhere": {command: memories, answers: []string{memoriesPending, gone}, said: "user ada: being erased: bytes may be left\n"},
		"memories, unknown":   {command: memories, answers: []string{gone}, fail: "not found (NOT_FOUND)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := c.answers[asked]
				asked++
				switch answer {
				case gone:
					w.WriteHeader(http.StatusNotFound)
				case pending, waits, left, memoriesPending:
					w.WriteHeader(http.StatusAccepted)
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer srv.Close()
			out, _, err := clitest.Run[Commands](t, "", slices.Concat(c.command, []string{"--yes", "--server", srv.URL}, c.args)...)
			if c.fail != "" {
				require.EqualError(t, err, c.fail)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.said, out)
			require.Equal(t, len(c.answers), asked)
		})
	}
}
