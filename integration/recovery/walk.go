package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/deployment"
)

// walk is a run, and a client that follows it at another node.
type walk struct {
	session string
	at      *deployment.Node // of the client
	end     context.CancelFunc
	ended   chan struct{}

	mu   sync.Mutex
	seen []sighting
	err  error
}

// sighting is a chunk that the client has got.
type sighting struct {
	sequence uint64
	kind     string
	time     time.Time
}

// walks begins n runs at a node, whose clients are at another one, and returns
// when all stream.
func (b *bench) walks(n int, at, from *deployment.Node) (all []*walk, err error) {
	all = make([]*walk, n)
	first := b.begun
	b.begun += n
	err = each(n, 16, func(i int) error {
		w := &walk{session: fmt.Sprint("walk-", first+i), at: from, ended: make(chan struct{})}
		all[i] = w
		err := insist(b.ctx, func() error {
			_, err := post(b.ctx, at.URL+"/start", map[string]any{"sessionId": w.session, "agentType": "walker", "message": "Go."}, nil)
			return err
		})
		if err != nil {
			return err
		}
		var ctx context.Context
		ctx, w.end = context.WithCancel(b.ctx)
		go w.follow(ctx)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		if err := b.wait(w.session+" does not begin", func() (bool, error) { return w.saidAfter(0), w.failure() }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// stop ends runs and their clients.
func (b *bench) stop(all []*walk, at *deployment.Node) error {
	for _, w := range all {
		w.end()
		<-w.ended
	}
	return each(len(all), 16, func(i int) error {
		return retry(b.ctx, func() error {
			_, err := post(b.ctx, at.URL+"/abort", map[string]any{"sessionId": all[i].session}, nil)
			return err
		})
	})
}

// wait waits until f says so.
func (b *bench) wait(what string, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(b.ctx, deployment.Within, fmt.Errorf("%s within %s", what, deployment.Within))
	defer cancel()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		if err := deployment.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// follow reads the run's stream until ctx ends; where it breaks off it continues.
func (w *walk) follow(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil && w.failure() == nil {
		w.connect(ctx)
		_ = deployment.Sleep(ctx, 5*time.Millisecond) // the loop asks ctx
	}
}

func (w *walk) connect(ctx context.Context) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.at.URL+"/sse?sessionId="+w.session, nil)
	if err != nil {
		panic(err) // our own
	}
	if last := w.last(); last.sequence > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(last.sequence, 10))
	}
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return
	}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		data, found := strings.CutPrefix(in.Text(), "data: ")
		if !found {
			continue
		}
		now := time.Now()
		var e struct {
			Type     string
			Chunk    struct{ Type string }
			Sequence uint64
		}
		err := json.Unmarshal([]byte(data), &e)
		if err != nil && !in.Scan() {
			return // the node has died in the middle of the line
		}
		if err != nil || e.Type != "chunk" {
			w.failed(fmt.Errorf("%s: not a chunk: %s", w.session, data))
			return
		}
		if last := w.last(); e.Sequence <= last.sequence {
			w.failed(fmt.Errorf("%s: %d came behind %d", w.session, e.Sequence, last.sequence))
			return
		}
		w.mu.Lock()
		w.seen = append(w.seen, sighting{e.Sequence, e.Chunk.Type, now})
		w.mu.Unlock()
	}
}

func (w *walk) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *walk) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// last is the last chunk that the client has got.
func (w *walk) last() (s sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) > 0 {
		s = w.seen[len(w.seen)-1]
	}
	return s
}

// said is the chunk type of a model's words.
const said = "text_delta"

// saidAfter reports whether the client has got words that came after a
// sequence.
func (w *walk) saidAfter(sequence uint64) bool {
	_, _, words := w.around(sequence)
	return words.sequence > 0
}

// around returns what the client has got last up to a sequence, first after
// it, and the first words after it.
func (w *walk) around(sequence uint64) (before, behind, words sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		switch {
		case s.sequence <= sequence:
			before = s
			continue
		case behind.sequence == 0:
			behind = s
		}
		if s.kind == said {
			return before, behind, s
		}
	}
	return before, behind, words
}

// claim finds the record by which another node than the first has claimed the
// tree; its sequence is 0 if there is none.
func (w *walk) claim(ctx context.Context, at *deployment.Node, from uint64, first string) (r eventlog.Record, node string, err error) {
	var raw []byte
	err = insist(ctx, func() (err error) {
		raw, err = get(ctx, fmt.Sprint(at.URL, "/sessions/", w.session, "/records?dead=1&from=", from))
		return err
	})
	if err != nil {
		return r, "", err
	}
	for line := range bytes.Lines(raw) {
		if err := r.UnmarshalJSON(line); err != nil {
			return r, "", err
		}
		if r.Type != (*eventlog.RunClaimed)(nil).Type() {
			continue
		}
		f, err := r.Fact()
		if err != nil {
			return r, "", err
		}
		if node := f.(*eventlog.RunClaimed).Node; node != first {
			return r, node, nil
		}
	}
	return eventlog.Record{}, "", nil
}
