package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// provider stands in for a model: it streams the session's tokens at the
// load's pace, as Chat Completions do. The token's way to the client leads
// through all of the daemon: its model adapter, its loop, its log and its
// stream.
type provider struct {
	url    string
	load   *load
	server *http.Server
	ctx    context.Context
	cancel context.CancelFunc
}

func startProvider(l *load) (*provider, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &provider{url: "http://" + listener.Addr().String(), load: l}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	go func() {
		if err := p.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			say("the model's stand-in: %v", err)
		}
	}()
	return p, nil
}

func (p *provider) stop() {
	p.cancel()
	p.server.Close()
}

// prompt is the user message of a session's run.
func prompt(session string) string { return "Say what " + session + " says." }

var active = regexp.MustCompile(`Say what active-(\d+) says\.`)

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	m := active.FindSubmatch(body)
	if err != nil || m == nil {
		http.Error(w, "nobody's turn", http.StatusBadRequest)
		return
	}
	s, _ := strconv.Atoi(string(m[1]))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
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
