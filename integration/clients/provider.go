package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
)

// provider replaces a model: it streams the session's tokens at the load's pace, as Chat
// Completions does. A token passes through the whole daemon to the client: its model
// adapter, its loop, its log and its stream.
type provider struct{ load *load }

// prompt is the user message of a session's run.
func prompt(session string) string { return "Say what " + session + " says." }

var active = regexp.MustCompile(`Say what active-(\d+) says\.`)

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m := active.FindSubmatch(body)
	if err != nil || m == nil {
		http.Error(w, "nobody's turn", http.StatusBadRequest)
		return
	}
	s, _ := strconv.Atoi(string(m[1]))
	ctx := r.Context()
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	send := func(data string) error {
		if _, err := io.WriteString(w, "data: "+data+"\n\n"); err != nil {
			return err
		}
		return rc.Flush()
	}
	// A first chunk, so that clients know when they are there.
	if send(`{"choices":[{"index":0,"delta":{"reasoning_content":"Well."},"finish_reason":null}]}`) != nil {
		return
	}
	err = p.load.keepPace(ctx, s, func(n int) error {
		return send(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`, p.load.token(s, n)))
	})
	if err == nil {
		<-ctx.Done() // the run and its client stay until all has been looked at
	}
}
