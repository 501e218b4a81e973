//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// produce is a session that is written from outside, while clients read it.
func (s *soak) produce(session string, r *rand.Rand) {
	l := &ledger{session: session, written: map[string]bool{}}
	defer s.follow(l, 1+r.IntN(2))()
	n := 0
	for i := range 6 + r.IntN(12) {
		if i > 0 && !s.sleep(s.loaded, between(r, 3*time.Second, 9*time.Second)) {
			break
		}
		var chunks []eventlog.Chunk
		var texts []string
		for range 1 + r.IntN(4) {
			n++
			text := fmt.Sprintf("%s.%d ", session, n)
			texts = append(texts, text)
			if r.IntN(300) == 0 {
				text += strings.Repeat("x", 300<<10) // stored in parts
			}
			chunks = append(chunks, deployment.TextChunk(session, text)...)
		}
		began := time.Now()
		var done api.Appended
		err := s.patiently(func() (err error) {
			done, err = s.api.AppendChunks(s.ctx, session, chunks, client.AppendOptions{IdempotencyKey: texts[0]})
			return err
		})
		if s.refused(session, "append", err) {
			return
		}
		s.took(&s.appends, began)
		l.acks = append(l.acks, evidence.Ack{First: done.FirstSequence, Last: done.LastSequence, Texts: texts})
		if s.wrong(injectLost) {
			l.acks = append(l.acks, evidence.Ack{First: done.LastSequence + 1, Last: done.LastSequence + 1, Texts: []string{session + ".1000 "}})
		}
		l.create()
		s.count(func(c *counts) { c.appends++ })
	}
	err := s.patiently(func() error {
		_, err := s.api.End(s.ctx, session, nil, client.AppendOptions{IdempotencyKey: "end"})
		return err
	})
	if s.refused(session, "end", err) {
		return
	}
	s.close(l, r)
}
