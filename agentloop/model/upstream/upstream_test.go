package upstream_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/upstream"
)

func TestExplain(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	secure.Config.ErrorLog = nil
	asked := func(address string) error {
		_, err := http.Get(address)
		require.Error(t, err)
		return err
	}
	secret := func(address string) string {
		return strings.Replace(address, "://", "://user:hunter2@", 1) + "/p?key=hunter2"
	}
	for name, tc := range map[string]struct {
		url  string
		err  error
		want string
	}{
		"no such host": {
			"https://user:hunter2@api.example.com/v1?key=hunter2", &net.OpError{Op: "dial", Err: &net.DNSError{Name: "api.example.com", IsNotFound: true}},
			"dial api.example.com: no such host (check a.url)",
		},
		"no name server": {
			"https://api.example.com", &net.DNSError{Err: "server misbehaving", IsTemporary: true},
			"dial api.example.com: the name could not be looked up (check a.url)",
		},
		"refused":      {secret(closed.URL), asked(secret(closed.URL)), "dial " + strings.TrimPrefix(closed.URL, "http://") + ": connection refused (check a.url)"},
		"of the error": {"", asked(secret(closed.URL)), "dial " + strings.TrimPrefix(closed.URL, "http://") + ": connection refused (check a.url)"},
		"unknown authority": {
			secure.URL, asked(secret(secure.URL)),
			"dial " + strings.TrimPrefix(secure.URL, "https://") + ": x509: certificate signed by unknown authority (check a.url)",
		},
		"unknown": {"https://api.example.com", errors.New("hunter2"), "no connection to api.example.com, or it was lost (check a.url)"},
	} {
		t.Run(name, func(t *testing.T) {
			e := upstream.Explain(tc.url, "a.url", tc.err)
			require.Equal(t, tc.want, e.Error())
			require.ErrorIs(t, e, tc.err)
			text := fmt.Sprint(upstream.Attrs(fmt.Errorf("further: %w", e)))
			require.NotContains(t, text, "hunter2")
			require.Contains(t, text, "a.url")
		})
	}
	require.Nil(t, upstream.Attrs(errors.New("other")))
	lone := upstream.Explain("http://x", "", errors.New("?"))
	require.Equal(t, "no connection to x, or it was lost", lone.Error())
	require.Equal(t, "no connection, or it was lost", upstream.Explain("", "", errors.New("?")).Error())
}

// TestAnswers: an answer that is a failure is named by its host and its status.
func TestAnswers(t *testing.T) {
	e := &upstream.Error{Host: "api.example.com", Status: 401, Check: "model.apiKey", Cause: errors.New("hunter2")}
	require.Equal(t, "api.example.com answered 401 Unauthorized (check model.apiKey)", e.Error())
	require.Equal(t, "api.example.com answered 401 Unauthorized: no such key (check model.apiKey)", e.Saying("no such key", 1000))
	require.Equal(t, "api.example.com answered 401 Unauthorized: no (check model.apiKey)", e.Saying("no such key", len(e.Error())+len(": no")))
	require.Equal(t, "[status 401 host api.example.com check model.apiKey]", strings.ReplaceAll(fmt.Sprint(upstream.Attrs(e)), "=", " "))
	require.Equal(t, "api.example.com answered 599", (&upstream.Error{Host: "api.example.com", Status: 599}).Error())
	require.Equal(t, "api.example.com: it stopped (check x)", (&upstream.Error{Host: "api.example.com", Check: "x"}).Saying("it stopped", 1000))

	wrapped := fmt.Errorf("further: %w", e)
	require.Equal(t, e.Error(), upstream.Text(wrapped))
	require.Empty(t, upstream.Text(errors.New("other")))
	require.Len(t, upstream.Text(&upstream.Error{Host: strings.Repeat("x", 5000), Reason: "no such host"}), 1<<10)

	program := &upstream.Error{Program: "mcp-files", Reason: "exit status 1", Check: "mcp.command of files"}
	require.Equal(t, "mcp-files: exit status 1 (check mcp.command of files)", program.Error())
	require.Contains(t, fmt.Sprint(upstream.Attrs(program)), "mcp-files")
}
