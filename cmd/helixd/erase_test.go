package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// An erasure is asked for until the daemon says that it is done, or knows
// nothing of the session any more.
func TestErase(t *testing.T) {
	const (
		pending = `{"sessionId":"s","pending":true,"forks":[]}` + "\n"
		done    = `{"sessionId":"s","pending":false,"forks":[]}` + "\n"
		gone    = `{"error":"not found","code":"NOT_FOUND"}`
	)
	for name, c := range map[string]struct {
		answers    []string
		said, fail string
		args       []string
	}{
		"at once":         {answers: []string{done}, said: done},
		"at last":         {answers: []string{pending, done}, said: done},
		"without waiting": {answers: []string{pending}, said: pending, args: []string{"--no-wait"}},
		"elsewhere":       {answers: []string{pending, gone}, said: pending},
		"unknown":         {answers: []string{gone}, fail: "not found (NOT_FOUND)"},
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
				case pending:
					w.WriteHeader(http.StatusAccepted)
				}
				_, _ = io.WriteString(w, answer)
			}))
			defer srv.Close()
			k, err := newParser(new(cli))
			require.NoError(t, err)
			parsed, err := k.Parse(append([]string{"erase", "s", "--yes", "--server", srv.URL}, c.args...))
			require.NoError(t, err)
			var out bytes.Buffer
			err = parsed.Run(&process{ctx: t.Context(), stdout: &out, stderr: io.Discard})
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
