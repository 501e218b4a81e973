package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// load appends chunks to all sessions, for as long as it is let: as an outside
// producer, that goes to the other node when one does not answer.
type load struct {
	urls   []string // of nodes
	every  time.Duration
	client *http.Client
	all    []*producer
	busy   sync.WaitGroup
	again  atomic.Int64 // requests that were made again
}

// producer appends to one session.
type producer struct {
	session string
	last    int // number of the last chunk
}

func newLoad(o options, urls []string) *load {
	l := &load{urls: urls, every: o.every, client: &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: o.sessions, IdleConnTimeout: 3 * time.Second},
	}}
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
	body, err := json.Marshal(map[string]any{
		"type": "text_delta", "delta": text(n, time.Now().UnixNano()), "agentId": p.session, "agentType": "producer", "timestamp": 1, "step": 1,
	})
	if err != nil {
		return err
	}
	for try := at; ; try++ {
		err := l.post(ctx, l.urls[try%len(l.urls)]+"/sessions/"+p.session+"/chunks", n, body)
		if err == nil {
			p.last = n
			return nil
		}
		l.again.Add(1)
		if ended := deployment.Sleep(ctx, 20*time.Millisecond); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

func (l *load) post(ctx context.Context, url string, key int, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", fmt.Sprint(key))
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.300s", resp.Status, raw)
	}
	return err
}
