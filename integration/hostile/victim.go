//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// load is the victim's: sessions that are streamed, each with a reader, and a
// listing that is asked for again and again.
type load struct {
	w    *world
	done sync.WaitGroup

	mu       sync.Mutex
	late     deployment.Samples // from when a chunk was due until its reader had it
	listed   deployment.Samples // a listing's answer
	current  time.Time          // when a listing was last up to date
	behind   time.Duration      // the longest time without one
	problems []error
}

// seen is what the victim saw.
type seen struct {
	chunks                int
	p50, p99, worst       time.Duration // of chunks
	listedP50, listedP99  time.Duration
	listings              int
	longestWithoutCurrent time.Duration
}

// listEvery is how often the victim lists its sessions.
const listEvery = 100 * time.Millisecond

// stream starts the load; it ends with ctx.
func (w *world) stream(ctx context.Context) *load {
	l := &load{w: w, current: time.Now()}
	for i := range w.sessions {
		id := fmt.Sprintf("%slive-%d", victimPrefix, i)
		sent := &times{at: map[uint64]time.Time{}}
		l.done.Go(func() { l.produce(ctx, id, i, sent) })
		l.done.Go(func() { l.read(ctx, id, sent) })
	}
	l.done.Go(func() { l.list(ctx) })
	return l
}

// times are when chunks were due, by what they say.
type times struct {
	mu sync.Mutex
	at map[uint64]time.Time
}

func (t *times) set(n uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at[n] = at
}

func (t *times) take(n uint64) (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.at[n]
	delete(t.at, n)
	return at, ok
}

// produce appends a chunk whenever one is due. Its schedule waits for nobody: who
// is slow is late.
func (l *load) produce(ctx context.Context, id string, i int, sent *times) {
	begin := time.Now().Add(l.w.every * time.Duration(i) / time.Duration(l.w.sessions))
	for n := uint64(1); ; n++ {
		due := begin.Add(time.Duration(n) * l.w.every)
		if deployment.Sleep(ctx, time.Until(due)) != nil {
			return
		}
		sent.set(n, due)
		_, err := l.w.victim.AppendChunks(ctx, id, deployment.TextChunk(id, strconv.FormatUint(n, 10)+" "), client.AppendOptions{IdempotencyKey: fmt.Sprint(id, ".", n)})
		if err != nil && ctx.Err() == nil {
			l.problem(fmt.Errorf("%s: an append of the victim's: %w", id, err))
			return
		}
	}
}

// read follows a session: each chunk has to come, once and in order.
func (l *load) read(ctx context.Context, id string, sent *times) {
	next := uint64(1)
	var r evidence.Reader
	for ctx.Err() == nil {
		err := deployment.Read(ctx, l.w.victim, id, r.Last(), 0, func(e remotehttp.RawEvent) bool {
			last, err := r.Take(e)
			if err != nil {
				l.problem(err)
				return true
			}
			if e.Name == "chunk" {
				next = l.heard(id, e.Data, next, sent)
			}
			return last
		})
		switch {
		case deployment.Status(err) == http.StatusNotFound: // not begun yet
			_ = deployment.Sleep(ctx, 50*time.Millisecond)
		case err != nil && ctx.Err() == nil:
			l.problem(fmt.Errorf("%s: a reader of the victim's: %w", id, err))
			return
		}
	}
}

// heard takes a chunk, which may be several that were merged.
func (l *load) heard(id string, data []byte, next uint64, sent *times) uint64 {
	var body struct{ Chunk struct{ Delta string } }
	if err := json.Unmarshal(data, &body); err != nil {
		l.problem(err)
		return next
	}
	now := time.Now()
	for _, word := range strings.Fields(body.Chunk.Delta) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || n != next {
			l.problem(fmt.Errorf("%s: a reader got %q in place of %d", id, word, next))
			return next
		}
		if at, ok := sent.take(n); ok {
			l.mu.Lock()
			l.late = append(l.late, now.Sub(at))
			l.mu.Unlock()
		}
		next++
	}
	return next
}

// list asks for the victim's sessions.
func (l *load) list(ctx context.Context) {
	// A failed answer counts: this client repeats nothing.
	once := client.New(l.w.node.URL, &client.Options{Token: client.StaticToken(victimToken), MaxRetries: -1})
	for deployment.Sleep(ctx, listEvery) == nil {
		began := time.Now()
		found, err := once.Sessions(ctx, client.SessionFilter{}, client.Paging{Limit: 100})
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		l.listed = append(l.listed, time.Since(began))
		if found.Current {
			l.current = time.Now()
		}
		l.behind = max(l.behind, time.Since(l.current))
		l.mu.Unlock()
		for _, item := range found.Items {
			if !strings.HasPrefix(item.SessionID, victimPrefix) {
				err = fmt.Errorf("it holds %q", item.SessionID)
			}
		}
		if err != nil {
			l.problem(fmt.Errorf("the victim's listing: %w", err))
		}
	}
}

// maxProblems is how many are kept; the first ones tell.
const maxProblems = 20

func (l *load) problem(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, err)
	}
}

// wait waits until the load has ended.
func (l *load) wait() []error {
	l.done.Wait()
	return l.problems
}

// reset begins to measure from now.
func (l *load) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late, l.listed, l.behind, l.current = nil, nil, 0, time.Now()
}

// seen is what was measured since reset.
func (l *load) seen() seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	return seen{
		chunks: len(l.late), p50: l.late.At(0.5), p99: l.late.At(0.99), worst: l.late.At(1),
		listings: len(l.listed), listedP50: l.listed.At(0.5), listedP99: l.listed.At(0.99), longestWithoutCurrent: l.behind,
	}
}
