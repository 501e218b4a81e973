package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// A program's own mux serves agents below a path, to callers with a token.
func ExampleNew() {
	log := memory.New()
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "greeter", Model: scripted.New([]scripted.Turn{{Text: "Hello."}}, nil),
	}}, nil)
	if err != nil {
		panic(err)
	}
	defer loop.Stop()
	api, err := httpapi.New(httpapi.Options{
		Log: log, Loop: loop,
		Auth: httpapi.BearerTokens([]httpapi.Token{
			{Token: "secret", Name: "web", Operations: []string{"start", "stream"}, Sessions: []string{"web-*"}},
		}),
	})
	if err != nil {
		panic(err)
	}
	defer api.Close()
	mux := http.NewServeMux()
	mux.Handle("/agents/", http.StripPrefix("/agents", api))
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, session := range []string{"web-1", "other"} {
		body := fmt.Sprintf(`{"sessionId":%q,"agentType":"greeter","message":"Hi"}`, session)
		request, _ := http.NewRequest(http.MethodPost, server.URL+"/agents/start", strings.NewReader(body))
		request.Header.Set("Authorization", "Bearer secret")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			panic(err)
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		fmt.Println(session, answer.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// web-1 200
	// other 403
}
