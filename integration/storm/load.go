package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
)

// load appends chunks to all sessions, for as long as it is let: as an outside
// producer, that goes to the other node when one does not answer.
type load struct {
	nodes []*client.Client
	every time.Duration
	all   []*producer
	busy  sync.WaitGroup
	again atomic.Int64 // requests that were made again
}

// producer appends to one session.
type producer struct {
	session string
	last    int // number of the last chunk
}

func newLoad(o options, nodes []*deployment.Node) *load {
	l := &load{every: o.every}
	for _, n := range nodes {
		l.nodes = append(l.nodes, n.API)
	}
	for i := range o.sessions {
		l.all = append(l.all, &producer{session: fmt.Sprint("storm-", i)})
	}
	return l
}

func (l *load) sessions() (names []string) {
	for _, p := range l.all {
		names = append(names, p.session)
	}
	return names
}

// begin makes every session, with its first chunk.
func (l *load) begin(ctx context.Context) error {
	for i, p := range l.all {
		if err := l.append(ctx, p, i); err != nil {
			return err
		}
	}
	return nil
}

// keepPace appends until ctx ends. A chunk that is begun is brought to its end.
func (l *load) keepPace(ctx, whole context.Context) {
	for i, p := range l.all {
		l.busy.Go(func() {
			for phase := l.every * time.Duration(i) / time.Duration(len(l.all)); deployment.Sleep(ctx, phase) == nil; phase = l.every {
				if l.append(whole, p, i) != nil {
					return // the whole is finished
				}
			}
		})
	}
}

// append appends the session's next chunk. It tries until it is acknowledged:
// by its key it is stored once.
func (l *load) append(ctx context.Context, p *producer, at int) error {
	n := p.last + 1
	chunk := deployment.TextChunk(p.session, text(n, time.Now().UnixNano()))
	err := deployment.Retry(ctx, 20*time.Millisecond, func() error {
		_, err := l.nodes[at%len(l.nodes)].AppendChunks(ctx, p.session, chunk, client.AppendOptions{IdempotencyKey: fmt.Sprint(n)})
		if err != nil {
			l.again.Add(1)
			at++
		}
		return err
	})
	if err == nil {
		p.last = n
	}
	return err
}
