package remotehttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

func TestRequestsFollowTheProtocol(t *testing.T) {
	s := newServer(t)
	s.on("/agents/start", says(200, `{"sessionId":"s","streamId":"st","runId":"r1","later":1}`))
	s.on("/agents/resume", says(200, `{"sessionId":"s","streamId":"st","runId":"r2"}`))
	s.on("/agents/status", says(200, `{"sessionId":"s","runId":"r2","status":"failed","stepCount":3,"output":{"a":1},"state":{"b":2},
		"error":"why","isExecuting":true,"streamId":"st","latestSequence":18446744073709551615}`))
	s.on("/agents/interrupt", says(200, `{"ok":true}`))
	s.on("/agents/abort", says(204, ``))
	h := remotehttp.New(s.http.URL+"/agents/", &remotehttp.Options{Headers: map[string]string{"X-Tenant": "t", "Content-Type": "text/plain"}})
	ctx := ctxOf(t)

	started, err := h.Start(ctx, remote.StartRequest{
		SessionID: "s", AgentType: "a", Message: `{"q":"<&>"}`, State: json.RawMessage(`{"k":1}`), Metadata: map[string]string{"m": "n"},
	})
	require.NoError(t, err)
	require.Equal(t, remote.Started{SessionID: "s", StreamID: "st", RunID: "r1"}, started)
	_, err = h.Start(ctx, remote.StartRequest{SessionID: "s", AgentType: "a", Message: "hi"})
	require.NoError(t, err)
	started, err = h.Resume(ctx, remote.ResumeRequest{SessionID: "s", Message: "go"})
	require.NoError(t, err)
	require.Equal(t, "r2", started.RunID)
	_, err = h.Resume(ctx, remote.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.NoError(t, h.Interrupt(ctx, "s", "enough"))
	require.NoError(t, h.Abort(ctx, "s", ""))
	st, err := h.Status(ctx, "s&x=ö/?#")
	require.NoError(t, err)
	require.Equal(t, remote.Status{
		SessionID: "s", RunID: "r2", Status: remote.StatusFailed, StepCount: 3, Output: json.RawMessage(`{"a":1}`),
		State: json.RawMessage(`{"b":2}`), Error: "why", IsExecuting: true, StreamID: "st", LatestSequence: 1<<64 - 1,
	}, st)

	for route, bodies := range map[string][]string{
		"/agents/start": {
			`{"sessionId":"s","agentType":"a","message":"{\"q\":\"<&>\"}","state":{"k":1},"metadata":{"m":"n"}}`,
			`{"sessionId":"s","agentType":"a","message":"hi"}`,
		},
		"/agents/resume":    {`{"sessionId":"s","message":"go"}`, `{"sessionId":"s"}`},
		"/agents/interrupt": {`{"sessionId":"s","reason":"enough"}`},
		"/agents/abort":     {`{"sessionId":"s"}`},
	} {
		calls := s.got(route)
		require.Len(t, calls, len(bodies), route)
		for i, c := range calls {
			require.Equal(t, "POST", c.method)
			require.JSONEq(t, bodies[i], c.body)
			require.EqualValues(t, len(c.body), c.length, "a Content-Length is required")
			require.Equal(t, "application/json", c.header.Get("Content-Type"))
			require.Equal(t, "t", c.header.Get("X-Tenant"))
		}
	}
	got := s.got("/agents/status")[0]
	require.Equal(t, "GET", got.method)
	require.Equal(t, "/agents/status?sessionId=s%26x%3D%C3%B6%2F%3F%23", got.uri)
	require.Empty(t, got.body)
}

func TestServerErrorsAndLostConnectionsAreRetried(t *testing.T) {
	ok := says(200, `{"sessionId":"s","streamId":"s","runId":"r"}`)
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `{"sessionId":`)
	}
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		retries int
		calls   int
		err     bool
	}{
		"500":                  {[]http.HandlerFunc{says(500, ""), ok}, 0, 2, false},
		"three times":          {[]http.HandlerFunc{says(502, ""), says(503, ""), breaks, ok}, 0, 4, false},
		"the fourth time":      {[]http.HandlerFunc{says(500, "")}, 0, 4, true},
		"half an answer":       {[]http.HandlerFunc{half, ok}, 0, 2, false},
		"as often as is asked": {[]http.HandlerFunc{breaks}, 5, 6, true},
		"never":                {[]http.HandlerFunc{says(500, ""), ok}, -1, 1, true},
		"400":                  {[]http.HandlerFunc{says(400, ""), ok}, 0, 1, true},
		"404":                  {[]http.HandlerFunc{says(404, ""), ok}, 0, 1, true},
		"409":                  {[]http.HandlerFunc{says(409, ""), ok}, 0, 1, true},
		"429":                  {[]http.HandlerFunc{says(429, ""), ok}, 0, 1, true},
		"not JSON":             {[]http.HandlerFunc{says(200, "<html>"), ok}, 0, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.on("/start", c.answers...)
			o := quick()
			o.MaxRetries = c.retries
			_, err := remotehttp.New(s.http.URL, o).Start(ctxOf(t), remote.StartRequest{SessionID: "s", AgentType: "a", Message: "m"})
			require.Equal(t, c.err, err != nil, "%v", err)
			calls := s.got("/start")
			require.Len(t, calls, c.calls)
			for _, again := range calls {
				require.Equal(t, calls[0].body, again.body, "each attempt has the whole body")
			}
		})
	}
}

func TestAServerThatIsAway(t *testing.T) {
	s := newServer(t)
	s.http.Close()
	_, err := remotehttp.New(s.http.URL, quick()).Status(ctxOf(t), "s")
	require.ErrorIs(t, err, remote.ErrUnreachable)
	require.True(t, remote.Retryable(err))
	require.Contains(t, err.Error(), "connection refused", "the operator learns why")
	require.NotContains(t, err.Error(), "127.0.0.1", "but it does not tell where")
}

func TestAServerThatIsNotTrusted(t *testing.T) {
	srv := httptest.NewUnstartedServer(says(200, ""))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the handshake
	srv.StartTLS()
	defer srv.Close()
	_, err := remotehttp.New(srv.URL, quick()).Status(ctxOf(t), "s")
	require.EqualError(t, err, "remote: the agent server does not answer: its certificate is not trusted")
}

func TestErrorAnswersAreTyped(t *testing.T) {
	for _, c := range []struct {
		status                     int
		body, code, message        string
		notFound, completed, again bool
	}{
		{404, `{"error":"there is no such session","code":"NOT_FOUND"}`, "NOT_FOUND", "there is no such session", true, false, false},
		{409, `{"error":"over","code":"ALREADY_COMPLETED","detail":{"x":1}}`, "ALREADY_COMPLETED", "over", false, true, false},
		{409, `{"error":"busy","code":"ALREADY_RUNNING"}`, "ALREADY_RUNNING", "busy", false, false, true},
		{404, `<html>nginx</html>`, "", "", true, false, false},
		{401, `{"error":{"message":"x"}}`, "", "", false, false, false},
		{307, ``, "", "", false, false, false},
		{400, `{"error":"e","code":"<script>"}`, "", "e", false, false, false},
	} {
		s := newServer(t)
		s.on("/status", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			says(c.status, c.body)(w, r)
		})
		_, err := remotehttp.New(s.http.URL, quick()).Status(ctxOf(t), "s")
		var e *remote.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, remote.Error{Status: c.status, Code: c.code, Message: c.message}, *e)
		require.Equal(t, c.notFound, remote.IsNotFound(err))
		require.Equal(t, c.completed, remote.IsAlreadyCompleted(err))
		require.Equal(t, c.again, e.Code == "ALREADY_RUNNING")
		require.False(t, remote.Retryable(err))
		require.Empty(t, s.got("/elsewhere"), "redirects are not followed")
	}
}

func TestMessagesAreFitToBeShown(t *testing.T) {
	s := newServer(t)
	quote := `{"status":"failed","code":"X","error":"key s3cret-token of Bearer s3cret-token at https://inside:8080/a?b=c is bad ` + strings.Repeat("é", 9000) + `"}`
	s.on("/status", says(200, quote))
	s.on("/start", says(403, quote))
	s.on("/sse", streams("event: error\ndata: "+quote+"\n\n"))
	h := remotehttp.New(s.http.URL, &remotehttp.Options{Headers: map[string]string{"Authorization": "Bearer s3cret-token", "X-Short": "is"}})

	st, err := h.Status(ctxOf(t), "s")
	require.NoError(t, err)
	_, err = h.Start(ctxOf(t), remote.StartRequest{})
	var e *remote.Error
	require.ErrorAs(t, err, &e)
	last := collect(t, h.Stream(ctxOf(t), "s", 0)).last.(remote.ErrorEvent)
	for _, message := range []string{st.Error, e.Message, last.Error} {
		require.True(t, strings.HasPrefix(message, "key [hidden] of [hidden] at [URL] is bad é"), message[:80])
		require.LessOrEqual(t, len(message), remotehttp.MaxErrorText)
		require.Greater(t, len(message), remotehttp.MaxErrorText-4)
		require.True(t, strings.HasSuffix(message, "é"), "no half character")
	}
}

func TestHeadersAreAskedForBeforeEveryAttempt(t *testing.T) {
	s := newServer(t)
	s.on("/abort", says(500, `{"error":"token-number-1"}`), says(200, ""))
	asked := 0
	o := quick()
	o.Headers = map[string]string{"X-Fixed": "f", "X-Token": "old"}
	o.HeaderFunc = func(context.Context) (map[string]string, error) {
		asked++
		return map[string]string{"X-Token": "token-number-" + string(rune('0'+asked))}, nil
	}
	require.NoError(t, remotehttp.New(s.http.URL, o).Abort(ctxOf(t), "s", ""))
	calls := s.got("/abort")
	require.Len(t, calls, 2)
	for i, want := range []string{"token-number-1", "token-number-2"} {
		require.Equal(t, want, calls[i].header.Get("X-Token"))
		require.Equal(t, "f", calls[i].header.Get("X-Fixed"))
	}

	cause := errors.New("POST https://login/?secret=1 failed")
	o.HeaderFunc = func(context.Context) (map[string]string, error) { asked++; return nil, cause }
	asked = 0
	err := remotehttp.New(s.http.URL, o).Abort(ctxOf(t), "s", "")
	require.ErrorIs(t, err, cause)
	require.NotContains(t, err.Error(), "login")
	require.Equal(t, 1, asked, "not retried")
}

func TestMisuseIsNotRetried(t *testing.T) {
	for _, url := range []string{"", "localhost:80", "ftp://x", "http://", "http://a b", "\x7f"} {
		_, err := remotehttp.New(url, nil).Status(ctxOf(t), "s")
		require.EqualError(t, err, "remote: the agent server's URL is unusable")
	}
	_, err := remotehttp.New("http://x", &remotehttp.Options{Headers: map[string]string{"X": "secret\n"}}).Status(ctxOf(t), "s")
	require.EqualError(t, err, "remote: a header has control characters")
	_, err = remotehttp.New("http://x", nil).Start(ctxOf(t), remote.StartRequest{State: json.RawMessage(`{`)})
	require.EqualError(t, err, "remote: the request can't be encoded as JSON")
}

func TestAnswersThatAreNotTheProtocols(t *testing.T) {
	s := newServer(t)
	h := remotehttp.New(s.http.URL, quick())
	for _, body := range []string{`{}`, `null`, `[]`, ``, `{"status":7,"sessionId":7}`, `{"status":"running","sessionId":"s"`} {
		s.on("/status", says(200, body))
		s.on("/start", says(200, body))
		_, err := h.Status(ctxOf(t), "s")
		require.ErrorIs(t, err, remote.ErrMalformed, body)
		_, err = h.Start(ctxOf(t), remote.StartRequest{})
		require.ErrorIs(t, err, remote.ErrMalformed, body)
	}
	sent := make(chan int)
	s.on("/status", func(w http.ResponseWriter, _ *http.Request) {
		block := []byte(strings.Repeat(" ", 1<<20))
		for n := 0; ; n++ {
			if _, err := w.Write(block); err != nil {
				sent <- n
				return
			}
		}
	})
	_, err := h.Status(ctxOf(t), "s")
	require.ErrorIs(t, err, remote.ErrTooLarge)
	require.Less(t, <-sent, 100, "MiB: what is too large is not read to its end")
	s.on("/status", says(200, "{\"status\":\"failed\",\"output\":\"a\xffb\"}"))
	st, err := h.Status(ctxOf(t), "s")
	require.NoError(t, err)
	require.Equal(t, `"a`+"\ufffd"+`b"`, string(st.Output), "what is handed on is valid UTF-8")
}

func TestACallEndsWithItsContext(t *testing.T) {
	s := newServer(t)
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	cause := errors.New("the parent was stopped")
	s.on("/status", func(_ http.ResponseWriter, r *http.Request) {
		cancel(cause)
		<-r.Context().Done()
	})
	_, err := remotehttp.New(s.http.URL, nil).Status(ctx, "s")
	require.Equal(t, cause, err)
	require.Len(t, s.got("/status"), 1)
}

// A redirect would take the headers, which may be secret, to another host.
func TestACallersClientFollowsNoRedirects(t *testing.T) {
	other, s := newServer(t), newServer(t)
	other.on("/status", says(200, `{"sessionId":"s","status":"running"}`))
	s.on("/status", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.http.URL+r.RequestURI, http.StatusTemporaryRedirect)
	})
	own := &http.Client{}
	o := remotehttp.Options{Headers: map[string]string{"X-Api-Key": "secret"}, Client: own, MaxRetries: -1}
	_, err := remotehttp.New(s.http.URL, &o).Status(ctxOf(t), "s")
	require.ErrorContains(t, err, "status 307")
	require.Empty(t, other.got("/status"))
	require.Nil(t, own.CheckRedirect, "the caller's stays as it is")

	followed := 0
	own.CheckRedirect = func(*http.Request, []*http.Request) error { followed++; return nil }
	_, err = remotehttp.New(s.http.URL, &o).Status(ctxOf(t), "s")
	require.NoError(t, err)
	require.Equal(t, 1, followed)
}
