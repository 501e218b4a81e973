package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// walk is a run, and a client that follows it at another node.
type walk struct {
	session string
	at      *client.Client // where the run is followed
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
	err = deployment.Each(n, 16, func(i int) error {
		w := &walk{session: fmt.Sprint("walk-", first+i), at: from.API, ended: make(chan struct{})}
		all[i] = w
		err := b.insist(func() error {
			_, err := at.API.Start(b.ctx, client.StartRequest{SessionID: w.session, AgentType: "walker", Messages: client.Text("Go.")})
			return err
		}, api.CodeAlreadyRunning)
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
	return deployment.Each(len(all), 16, func(i int) error {
		return deployment.Retry(b.ctx, 100*time.Millisecond, func() error { return at.API.Abort(b.ctx, all[i].session, "") })
	})
}

// wait waits until f says so.
func (b *bench) wait(what string, f func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(b.ctx, deployment.Within, fmt.Errorf("%s within %s", what, deployment.Within))
	defer cancel()
	return deployment.Until(ctx, 20*time.Millisecond, f)
}

// follow reads the run's stream until ctx ends; where it breaks off it continues.
func (w *walk) follow(ctx context.Context) {
	defer close(w.ended)
	for ctx.Err() == nil && w.failure() == nil {
		w.connect(ctx)
		_ = deployment.Sleep(ctx, 5*time.Millisecond) // the loop asks ctx
	}
}

// connect reads one connection to its end. What else than a broken connection ends it is
// seen by the caller, who waits for words.
func (w *walk) connect(ctx context.Context) {
	_ = deployment.Read(ctx, w.at, w.session, w.last().sequence, 0, func(event remotehttp.RawEvent) (last bool) {
		now := time.Now()
		var e struct {
			Type     string
			Chunk    struct{ Type string }
			Sequence uint64
		}
		switch err := json.Unmarshal(event.Data, &e); {
		case err != nil || e.Type != "chunk":
			w.failed(fmt.Errorf("%s: not a chunk: %s", w.session, event.Data))
			return true
		case e.Sequence <= w.last().sequence:
			w.failed(fmt.Errorf("%s: %d came after %d", w.session, e.Sequence, w.last().sequence))
			return true
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = append(w.seen, sighting{e.Sequence, e.Chunk.Type, now})
		return false
	})
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
func (b *bench) claim(ctx context.Context, w *walk, at *deployment.Node, from uint64, first string) (found eventlog.Record, err error) {
	err = b.claims(ctx, w, at, from, func(r eventlog.Record, node string) bool {
		if node != first {
			found = r
		}
		return node == first
	})
	return found, err
}

// claims calls f with the records by which nodes have claimed the tree, until it says no.
func (b *bench) claims(ctx context.Context, w *walk, at *deployment.Node, from uint64, f func(r eventlog.Record, node string) bool) error {
	return b.insist(func() error {
		for r, err := range at.API.Records(ctx, w.session, client.RecordRange{From: from, Dead: true}) {
			if err != nil {
				return err
			}
			if r.Type != (*fact.RunClaimed)(nil).Type() {
				continue
			}
			claimed, err := r.Fact()
			if err != nil {
				return err
			}
			if !f(r, claimed.(*fact.RunClaimed).Node) {
				return nil
			}
		}
		return nil
	})
}
