package remotehttp_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// send makes one attempt of a request to /x, which s answers.
func (s *server) send(r remotehttp.Request, answer http.HandlerFunc) (*remotehttp.Response, error) {
	s.on("/x/a%2Fb", answer)
	s.on("/x/a/b", answer)
	r.Route = "x/a%2Fb"
	a, err := remotehttp.New(s.http.URL, nil).Send(ctxOf(s.t), r)
	if err == nil {
		s.t.Cleanup(a.Close)
	}
	return a, err
}

func TestSendIsOneAttemptOfAnyRequest(t *testing.T) {
	s := newServer(t)
	a, err := s.send(remotehttp.Request{
		Method: "PUT", Body: []byte("x\n"), ContentType: "text/plain", Accept: "text/csv", Header: map[string]string{"X-More": "1"},
	}, says(503, `{"error":"stopping","code":"UNAVAILABLE","detail":7}`))
	require.NoError(t, err, "it was answered")
	require.False(t, a.OK())
	require.Equal(t, 503, a.Status())
	require.True(t, a.Is("application/json"))
	refused, body := a.Refusal()
	require.Equal(t, &remote.Error{Status: 503, Code: "UNAVAILABLE", Message: "stopping"}, refused)
	require.Contains(t, string(body), `"detail":7`)
	calls := s.got("/x/a/b")
	require.Len(t, calls, 1)
	require.Equal(t, "/x/a%2Fb", calls[0].uri, "its path is what the caller has escaped")
	require.Equal(t, "x\n", calls[0].body)
	for name, want := range map[string]string{"Content-Type": "text/plain", "Accept": "text/csv", "X-More": "1"} {
		require.Equal(t, want, calls[0].header.Get(name))
	}
}

func TestBodiesThatAreOpened(t *testing.T) {
	s := newServer(t)
	_, err := s.send(remotehttp.Request{Method: "POST", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(strings.Repeat("x", 1<<20))), nil
	}}, says(200, ""))
	require.NoError(t, err)
	call := s.got("/x/a/b")[0]
	require.Len(t, call.body, 1<<20)
	require.EqualValues(t, -1, call.length, "of any length")

	broken := errors.New("the file can't be read")
	for _, open := range []func() (io.ReadCloser, error){
		func() (io.ReadCloser, error) { return nil, broken },
		func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{broken})), nil
		},
	} {
		_, err := s.send(remotehttp.Request{Method: "POST", Open: open}, says(200, ""))
		require.Equal(t, broken, err, "not the connection's")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestLines(t *testing.T) {
	s := newServer(t)
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "one\ntwo\n")
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		lines  []string
		err    error
	}{
		"all":                   {says(200, "one\n\ntwo\n"), []string{"one", "", "two"}, nil},
		"none":                  {says(200, ""), nil, nil},
		"half a line":           {says(200, "one\ntwo"), []string{"one"}, remote.ErrStreamDropped},
		"a body that is cut":    {half, []string{"one", "two"}, remote.ErrStreamDropped},
		"a line of the limit":   {says(200, strings.Repeat("x", 1000)+"\n"), []string{strings.Repeat("x", 1000)}, nil},
		"a line that is longer": {says(200, "one\n"+strings.Repeat("x", 1001)+"\n"), []string{"one"}, remote.ErrTooLarge},
	} {
		a, err := s.send(remotehttp.Request{Method: "GET"}, tc.answer)
		require.NoError(t, err)
		var lines []string
		var last error
		for line, err := range a.Lines(1000) {
			require.NoError(t, last)
			if last = err; err == nil {
				lines = append(lines, string(line))
			}
		}
		require.ErrorIs(t, last, tc.err, name)
		require.Equal(t, tc.lines, lines, name)
	}
}
