package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

func TestBodiesUnderWayAreBounded(t *testing.T) {
	a := newAPI(t)
	httpapi.SetBodies(a.srv, 100_000, 500_000)
	small, large := line("s", "x"), line("s", strings.Repeat("x", 100_000))
	busy := a.post(chunksOf("s"), large)
	busy.failed(t, 429, httpapi.CodeBusy)
	require.Equal(t, "1", busy.header.Get("Retry-After"))
	for range 20 { // each one is given back
		a.post(chunksOf("s"), small).appended(t)
	}
	require.Len(t, a.texts("s"), 20)
	httpapi.SetBodies(a.srv, 0, 0)
	a.post(chunksOf("s"), small).appended(t) // small ones always pass
	httpapi.SetBodies(a.srv, 500_000, 100_000)
	a.post(chunksOf("s"), large).failed(t, 503, httpapi.CodeBusy)
	require.NotContains(t, a.logs.String(), "request failed")
}

// A body for a session that its caller may not use is refused before more of it
// is parsed than the session's id.
func TestWhoMayNotIsToldSoWhateverElseIsInTheBody(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withChat(), func(o *httpapi.Options) {
		o.Auth = func(_ *http.Request, _ httpapi.Operation, session string) error {
			if session == "yours" {
				return httpapi.ErrForbidden
			}
			return nil
		}
	})
	for target, body := range map[string]string{
		"/chat":               `{"id":"yours","messages":[1,{},{}]}`,
		"/start":              `{"sessionId":"yours","agentType":7}`,
		"/resume":             `{"sessionId":"yours","mode":7}`,
		"/interrupt":          `{"sessionId":"yours","reason":7}`,
		"/abort":              `{"sessionId":"yours","reason":7}`,
		"/submit-tool-result": `{"sessionId":"yours","toolCallId":7}`,
	} {
		a.post(target, body).failed(t, 403, httpapi.CodeUnauthorized)
		a.post(target, strings.Replace(body, "yours", "mine", 1)).failed(t, 400, httpapi.CodeInvalidRequest)
	}
}
