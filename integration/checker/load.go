package checker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// How a producer makes its appends safe to be repeated.
const (
	byKey      = iota // Idempotency-Key
	byExpected        // Helix-Expected-Sequence
	byBoth
)

// producer appends chunks to a session from outside, and continues until it knows the
// result of each append.
type producer struct {
	c    *Checker
	l    *ledger
	rand *rand.Rand
	name string
	how  int
	next int    // text
	head uint64 // of the session, where it is the only producer
}

// produce is the life of a session of outside producers: one or two of them,
// and readers.
func (c *Checker) produce(i int) {
	l := c.ledger(fmt.Sprintf("producer-%d", i), "")
	l.does("is being written")
	stop := c.follow(l, 1+i%2)
	var producers sync.WaitGroup
	alone := i%5 != 0
	for j := range 2 {
		if j == 1 && alone {
			break
		}
		p := &producer{c: c, l: l, rand: c.random("producer", 2*i+j), name: fmt.Sprintf("%d.%d", i, j)}
		if alone && !c.PowerFails { // a head that was read is no promise: the power may fail
			p.how = p.rand.IntN(3)
		}
		producers.Go(p.produce)
	}
	producers.Wait()
	if i%3 == 0 {
		p := &producer{c: c, l: l, rand: c.random("end", i), name: fmt.Sprintf("%d.end", i)}
		p.end()
	}
	l.does("is read to its end")
	stop()
	l.does("")
}

// produce appends until the load ends.
func (p *producer) produce() {
	pause := cmp.Or(p.c.Pause, max(80*time.Millisecond, time.Duration(p.c.Sessions/2)*8*time.Millisecond))
	for p.c.settled.Err() == nil && p.append() {
		_ = deployment.Sleep(p.c.settled, pause/2+time.Duration(p.rand.Int64N(int64(pause))))
	}
}

// append appends some chunks, on one node after the other until one answers.
func (p *producer) append() bool {
	var texts []string
	var chunks []eventlog.Chunk
	for range 1 + p.rand.IntN(6) {
		p.next++
		text := fmt.Sprintf("%s.%d ", p.name, p.next)
		texts = append(texts, text)
		if p.rand.IntN(200) == 0 {
			text += strings.Repeat("x", 300<<10) // stored in parts
		}
		chunks = append(chunks, deployment.TextChunk(p.l.session, text)...)
	}
	var o client.AppendOptions
	if p.how != byExpected {
		o.IdempotencyKey = texts[0]
	}
	if head := p.head; p.how != byKey {
		o.ExpectedSequence = &head
	}
	p.l.update(func() {
		for _, text := range texts {
			p.l.unsure[text] = true
		}
	})
	unsure := false
	for {
		done, err := p.c.anyNode(p.rand).AppendChunks(p.c.ctx, p.l.session, chunks, o)
		switch {
		case p.c.ctx.Err() != nil:
			return false
		case p.c.unsure(err):
			unsure = true
		case err == nil:
			if done.Count != len(texts) || done.LastSequence-done.FirstSequence != uint64(len(texts)-1) {
				p.c.Violate(p.l.session, nil, "%d chunks were appended, and the answer is %+v", len(texts), done)
				return false
			}
			p.done(evidence.Ack{First: done.FirstSequence, Last: done.LastSequence, Texts: texts})
			return true
		case p.how == byExpected && unsure && deployment.Code(err) == api.CodeSequenceConflict:
			return p.find(texts, headOf(err))
		default:
			p.c.Violate(p.l.session, []uint64{p.head}, "the only producer appended after %d and was answered %v", p.head, err)
			return false
		}
		if !p.c.Sleep(20*time.Millisecond + time.Duration(p.rand.Int64N(int64(300*time.Millisecond)))) {
			return false
		}
	}
}

func (p *producer) done(a evidence.Ack) {
	p.head = a.Last
	p.l.update(func() {
		p.l.created = true
		p.l.acks = append(p.l.acks, a)
		for _, text := range a.Texts {
			delete(p.l.unsure, text)
		}
	})
}

// find looks for an append of which the answer was lost, and after which the
// session has gone on to head: nobody else writes there, so it is that append.
func (p *producer) find(texts []string, head uint64) bool {
	for p.c.ctx.Err() == nil {
		path := fmt.Sprintf("/sessions/%s/records?from=%d&to=%d&dead=1", p.l.session, p.head, head)
		raw, err := p.c.get(p.c.anyNode(p.rand), path)
		if err == nil {
			records, err := evidence.Parse(raw)
			if err != nil || len(records) != len(texts) || evidence.TextOf(records[0]) != texts[0] {
				p.c.Violate(p.l.session, []uint64{p.head, head}, "the session has gone on by itself: %.500s", raw)
				return false
			}
			p.done(evidence.Ack{First: records[0].Sequence, Last: records[len(records)-1].Sequence, Texts: texts})
			return true
		}
		code, unsure := deployment.Code(err), p.c.unsure(err)
		if !unsure && code != api.CodeCursorAhead && code != api.CodeNotFound {
			p.c.Violate(p.l.session, []uint64{p.head, head}, "a read of what a conflict tells of is answered %v", err)
			return false
		}
		if !unsure {
			p.c.Note("a read that lacks what another node has told of", "%s: %v", path, err)
		}
		p.c.Sleep(100 * time.Millisecond)
	}
	return false
}

// end ends the session's stream.
func (p *producer) end() {
	for p.c.ctx.Err() == nil {
		_, err := p.c.anyNode(p.rand).End(p.c.ctx, p.l.session, json.RawMessage(strconv.Quote(p.name)), client.AppendOptions{IdempotencyKey: p.name})
		if err == nil {
			p.l.update(func() { p.l.ended = true })
			return
		}
		if !p.c.unsure(err) {
			p.c.Violate(p.l.session, nil, "the end of the stream is answered %v", err)
			return
		}
		p.c.Sleep(100 * time.Millisecond)
	}
}

// headOf returns the session's head as a conflict reports it.
func headOf(err error) uint64 {
	var detail struct{ Head uint64 }
	if refusal, ok := errors.AsType[*client.Error](err); ok {
		_ = json.Unmarshal(refusal.Detail, &detail)
	}
	return detail.Head
}
