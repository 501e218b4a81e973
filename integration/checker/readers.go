package checker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// idleWithin is how long a connection may say nothing before a reader gives it
// up: two heartbeats and more.
const idleWithin = 40 * time.Second

// reader is an SSE client: when its connection breaks it goes to another node
// with the last id that it has seen.
type reader struct {
	c    *Checker
	l    *ledger
	rand *rand.Rand
	at   int // node
	done chan struct{}

	mu    sync.Mutex
	power int64 // power losses before what it has seen
	evidence.Reader
	until  uint64 // it is to end there; 0: at the stream's end
	hangUp context.CancelFunc
}

// follow attaches readers. What it returns waits until they have got all that
// there is of the session, which has come to its end.
func (c *Checker) follow(l *ledger, count int) (stop func()) {
	var readers []*reader
	for i := range count {
		r := &reader{c: c, l: l, rand: c.random("reader "+l.session, i), done: make(chan struct{})}
		r.at = r.rand.Int()
		readers = append(readers, r)
		go r.follow()
	}
	l.update(func() { l.readers = append(l.readers, readers...) })
	return func() {
		end := uint64(0)
		if l.agent == "" && !l.isEnded() {
			end = c.lastChunk(l)
		}
		for _, r := range readers {
			r.endAt(end)
			<-r.done
		}
	}
}

func (l *ledger) isEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// lastChunk returns the sequence of the session's last chunk.
func (c *Checker) lastChunk(l *ledger) uint64 {
	for i := 0; c.ctx.Err() == nil; i++ {
		last, err := uint64(1), error(nil)
		for r, e := range c.node(i).API.Records(c.ctx, l.session, client.RecordRange{Dead: true}) {
			if err = e; err == nil && r.Kind == eventlog.KindChunk {
				last = r.Sequence
			}
		}
		if err == nil {
			return last
		}
		if deployment.Code(err) == api.CodeNotFound && !l.isCreated() {
			return 0
		}
		c.Sleep(100 * time.Millisecond)
	}
	return 0
}

// endAt says how far the reader has to come; 0: to the end of the stream.
func (r *reader) endAt(sequence uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = sequence
	if r.come() && r.hangUp != nil {
		r.hangUp()
	}
}

// come reports whether the reader has come as far as it has to.
func (r *reader) come() bool {
	return r.Over || r.until > 0 && r.Last() > 0 && r.Last() >= r.until
}

func (r *reader) follow() {
	defer close(r.done)
	for r.c.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(r.c.ctx)
		r.mu.Lock()
		if power := r.c.power.Load(); power != r.power { // live readers may have seen more than was synced
			r.power, r.Reader = power, evidence.Reader{}
		}
		come := r.come()
		r.hangUp = cancel
		r.mu.Unlock()
		if !come {
			r.connect(ctx)
		}
		cancel()
		if come {
			return
		}
		r.at = r.rand.Int()
		r.c.Sleep(10*time.Millisecond + time.Duration(r.rand.Int64N(int64(150*time.Millisecond))))
	}
}

func (r *reader) last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Last()
}

// connect reads one connection to its end.
func (r *reader) connect(ctx context.Context) {
	created, at := r.l.isCreated(), r.c.node(r.at)
	err := deployment.Read(ctx, at.Clients, r.l.session, r.last(), idleWithin, r.event)
	switch status := deployment.Status(err); {
	case status == 0, status >= 500:
	case status == http.StatusNotFound:
		if created && r.power == r.c.power.Load() {
			r.c.Note("a stream that is there is not found", "%s by %s", r.l.session, at.Name)
		}
	case status == http.StatusRequestedRangeNotSatisfiable:
		if r.power == r.c.power.Load() {
			r.c.Note("a cursor is ahead of another node", "%s at %d by %s", r.l.session, r.last(), at.Name)
		}
	default:
		r.c.Violate(r.l.session, nil, "GET /sse after %d is answered %v", r.last(), err)
	}
}

// event takes an event, and reports whether the connection is done with.
func (r *reader) event(e remotehttp.RawEvent) bool {
	r.mu.Lock()
	last, err := r.Take(e)
	come := r.come()
	r.mu.Unlock()
	if err != nil {
		r.c.broken(r.l, fmt.Errorf("by %s: %w", r.c.node(r.at).Name, err))
	}
	return last || come
}
