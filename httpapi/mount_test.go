package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInAnotherMux: a program serves chats under its own path, beside its
// own pages; odd session ids get through.
func TestInAnotherMux(t *testing.T) {
	t.Parallel()
	a := newChat(t, agents(gatedModel{}))
	mux := http.NewServeMux()
	mux.Handle("/api/", http.StripPrefix("/api", a.srv))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	outer := httptest.NewServer(mux)
	t.Cleanup(outer.Close)
	a.http.URL = outer.URL
	require.Equal(t, http.StatusTeapot, a.get("/").status)
	for _, session := range []string{"s", "a/b", "50%", "?#"} {
		got := a.post("/api/chat", says(session, "echo", "hi"))
		require.Equal(t, 200, got.status, got.body)
		require.Equal(t, "hello", parts(t, got.body).text())
		require.Equal(t, 200, a.get("/api/chat/"+escape(session)+"/snapshot").status)
		require.Equal(t, 204, a.get("/api/chat/"+escape(session)+"/stream").status)
	}
	require.Equal(t, 404, a.get("/api/elsewhere").status)
}
