package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/stretchr/testify/require"
)

// An erasure is asked for until the daemon says that it is done, or knows
// nothing of the session, or the memories, any more.
func TestErase(t *testing.T) {
	const (
		pending = `{"sessionId":"s","pending":true,"forks":[]}` + "\n"
		done    = `{"sessionId":"s","pending":false,"forks":[]}` + "\n"
		waits   = `{"sessionId":"s","pending":true,"waitsFor":"node2","forks":[]}` + "\n"
		left    = `{"sessionId":"s","pending":true,"left":"ask the operator","forks":[]}` + "\n"
		gone    = `{"error":"not found","code":"NOT_FOUND"}`

		memoriesPending = `{"scope":{"kind":"user","id":"ada"},"pending":true}` + "\n"
		memoriesDone    = `{"scope":{"kind":"user","id":"ada"},"pending":false}` + "\n"
	)
	session, memories := []string{"erase", "s"}, []string{"memories", "erase", "--user", "ada"}
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
			k, err := newParser(new(cli))
			require.NoError(t, err)
			parsed, err := k.Parse(slices.Concat(c.command, []string{"--yes", "--server", srv.URL}, c.args))
			require.NoError(t, err)
			var out bytes.Buffer
			err = parsed.Run(&flags.Process{Ctx: t.Context(), Stdout: &out, Stderr: io.Discard})
			if c.fail != "" {
				require.EqualError(t, err, c.fail)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, c.said, out.String())
			require.Equal(t, len(c.answers), asked)
		})
	}
}
