//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"hash/maphash"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// idleWithin is how long a connection may say nothing before a reader gives it
// up: two heartbeats and more.
const idleWithin = 40 * time.Second

// reader is an SSE client: when its connection breaks it goes to another node
// with the last id that it has seen.
type reader struct {
	t    *trial
	l    *ledger
	rand *rand.Rand
	at   int // node
	done chan struct{}

	mu     sync.Mutex
	power  int64 // power losses before what it has seen
	seen   []shown
	over   bool
	until  uint64 // it is to end there; 0: at the stream's end
	hangUp context.CancelFunc
}

// shown is a record that was shown.
type shown struct{ sequence, hash uint64 }

var seed = maphash.MakeSeed()

// follow attaches readers. What it returns waits until they have got all that
// there is of the session, which has come to its end.
func (t *trial) follow(l *ledger, count int) (stop func()) {
	var readers []*reader
	for i := range count {
		r := &reader{t: t, l: l, rand: t.random("reader "+l.session, i), done: make(chan struct{})}
		r.at = r.rand.IntN(len(t.cluster))
		readers = append(readers, r)
		go r.follow()
	}
	l.update(func() { l.readers = append(l.readers, readers...) })
	return func() {
		end := uint64(0)
		if l.agent == "" && !l.isEnded() {
			end = t.lastChunk(l)
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
func (t *trial) lastChunk(l *ledger) uint64 {
	for i := 0; t.ctx.Err() == nil; i++ {
		a := t.get(t.ctx, t.cluster[i%len(t.cluster)].direct, "/sessions/"+l.session+"/records?dead=1")
		if records, err := parseRecords(a.raw); a.status == http.StatusOK && err == nil {
			last := uint64(1)
			for _, r := range records {
				if r.Kind == eventlog.KindChunk {
					last = r.Sequence
				}
			}
			return last
		}
		if a.code == "NOT_FOUND" && !l.isCreated() {
			return 0
		}
		t.sleep(100 * time.Millisecond)
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
	return r.over || r.until > 0 && len(r.seen) > 0 && r.seen[len(r.seen)-1].sequence >= r.until
}

func (r *reader) follow() {
	defer close(r.done)
	for r.t.ctx.Err() == nil {
		ctx, cancel := context.WithCancel(r.t.ctx)
		r.mu.Lock()
		if power := r.t.power.Load(); power != r.power { // live readers may have seen more than was synced
			r.power, r.seen, r.over = power, nil, false
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
		r.at = r.rand.IntN(len(r.t.cluster))
		r.t.sleep(10*time.Millisecond + time.Duration(r.rand.Int64N(int64(150*time.Millisecond))))
	}
}

func (r *reader) last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		return 0
	}
	return r.seen[len(r.seen)-1].sequence
}

// connect reads one connection to its end.
func (r *reader) connect(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(idleWithin, cancel)
	defer idle.Stop()
	created := r.l.isCreated()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.t.cluster[r.at].url+"/sse?sessionId="+r.l.session, nil)
	if err != nil {
		panic(err) // our own
	}
	if last := r.last(); last > 0 {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	resp, err := r.t.client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
	case resp.StatusCode >= 500:
		return
	case resp.StatusCode == http.StatusNotFound:
		if created && r.power == r.t.power.Load() {
			r.t.note("a stream that is there is not found", "%s by %s", r.l.session, r.t.cluster[r.at].name)
		}
		return
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		if r.power == r.t.power.Load() {
			r.t.note("a cursor is ahead of another node", "%s at %d by %s", r.l.session, r.last(), r.t.cluster[r.at].name)
		}
		return
	default:
		r.t.violate(r.l.session, nil, "GET /sse behind %d is answered %s", r.last(), resp.Status)
		return
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 16<<20)
	id, name, data := "", "", ""
	for in.Scan() {
		idle.Reset(idleWithin)
		field, value, _ := strings.Cut(in.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if data != "" && r.event(id, name, data) {
				return
			}
			id, name, data = "", "", ""
		}
	}
}

// event takes an event, and reports whether the connection is done with.
func (r *reader) event(id, name, data string) bool {
	var e struct {
		Type, Status string
		Chunk        json.RawMessage
		Sequence     uint64
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil || e.Type != name || name == "chunk" && id != strconv.FormatUint(e.Sequence, 10) {
		r.t.violate(r.l.session, nil, "an event %s with id %s and data %s", name, id, data)
		return true
	}
	if name == "chunk" {
		if last := r.last(); e.Sequence <= last {
			r.t.violate(r.l.session, []uint64{last, e.Sequence}, "a reader by %s got %d behind %d", r.t.cluster[r.at].name, e.Sequence, last)
			return true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch name {
	case "chunk":
		r.seen = append(r.seen, shown{e.Sequence, maphash.Bytes(seed, e.Chunk)})
	case "end", "error":
		r.over = e.Status == "" // else it waits, and goes on later
		return true
	}
	return r.come()
}
