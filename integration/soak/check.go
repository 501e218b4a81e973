//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
	"github.com/helixd/helixd/projector"
)

const (
	// readWithin is how long readers may take to come to an end that is there.
	readWithin = 3 * time.Minute
	// eraseOneOf: one session of so many is erased. To overwrite a record is to
	// rewrite its block of the log, up to 8 MiB: at one of eight a machine of two
	// cores did little else.
	eraseOneOf = 40
	// rechecked is how many sessions are read again at the end.
	rechecked = 500
)

// close checks a session that has come to its end: all that was acknowledged is
// there, once, its readers have got all of it, and its state is what its records
// say. Some are forked then, some erased.
func (s *soak) close(l *ledger, r *rand.Rand) {
	deadline := time.NewTimer(readWithin)
	defer deadline.Stop()
	for _, reader := range l.readers {
		select {
		case <-reader.done:
		case <-deadline.C:
			s.violate(l.session, errors.New("a reader has not come to the end"))
			return
		}
	}
	if s.ctx.Err() != nil {
		return
	}
	hash, err := s.check(l)
	if err != nil {
		s.violate(l.session, err)
		return
	}
	if r.IntN(10) == 0 {
		fork := l.session + "-fork"
		err := s.patiently(func() error {
			_, err := s.api.Fork(s.ctx, l.session, client.ForkRequest{SessionID: fork})
			return err
		}, api.CodeSessionExists)
		if s.refused(l.session, "fork", err) {
			return
		}
		forked, err := s.check(&ledger{session: fork})
		if s.refused(fork, "check", err) {
			return
		}
		s.count(func(c *counts) { c.forks++ })
		s.remember(kept{fork, forked})
	}
	if r.IntN(eraseOneOf) == 0 {
		if !s.erase(l.session) {
			return
		}
		hash = 0
	}
	s.remember(kept{l.session, hash})
}

func (s *soak) remember(k kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.left, k)
	s.counts.sessions++
}

// check returns the hash of a session's records, if they are right.
func (s *soak) check(l *ledger) (hash uint64, err error) {
	raw, err := s.get(s.ctx, "/sessions/"+l.session+"/records?dead=1")
	if err != nil {
		return 0, err
	}
	records, err := evidence.Parse(raw)
	if err != nil {
		return 0, err
	}
	if err := l.promises().Hold(records); err != nil {
		return 0, err
	}
	dead, err := evidence.DeadOf(records)
	if err != nil {
		return 0, err
	}
	shown := 0
	for _, r := range l.readers {
		shown += len(r.Seen)
		if err := evidence.Complete(r.Seen, records, dead); err != nil {
			return 0, err
		}
	}
	tree := projector.Fold(records...)
	state, err := s.get(s.ctx, fmt.Sprintf("/sessions/%s/state?at=%d", l.session, tree.Head))
	if err != nil {
		return 0, err
	}
	s.count(func(c *counts) { c.records, c.shown = c.records+len(records), c.shown+shown })
	return evidence.Hash(evidence.Timeless(raw)), evidence.SameState(state, tree)
}

// erase erases a session, to the last byte.
func (s *soak) erase(session string) bool {
	for pending := false; s.ctx.Err() == nil; pending = true {
		var e api.Erased
		err := s.patiently(func() (err error) { e, err = s.api.Erase(s.ctx, session); return err }, api.CodeNotFound)
		if pending && deployment.Status(err) == http.StatusNotFound {
			break // nothing was left
		}
		if s.refused(session, "erase", err) {
			return false
		}
		if !e.Pending {
			break
		}
		s.sleep(s.ctx, time.Second)
	}
	s.count(func(c *counts) { c.erased++ })
	return true
}

// recheck reads sessions again that were found right: they are as they were.
func (s *soak) recheck() error {
	deployment.Say("reading again")
	random := s.random("recheck", 0)
	random.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	for _, k := range s.left[:min(rechecked, len(s.left))] {
		raw, err := s.get(s.ctx, "/sessions/"+k.session+"/records?dead=1")
		switch {
		case k.hash == 0 && deployment.Status(err) == http.StatusNotFound:
		case k.hash == 0:
			return evidence.Wrong(nil, "%s was erased and is there again: %.200s, %v", k.session, raw, err)
		case err != nil:
			return fmt.Errorf("%s: %w", k.session, err)
		case evidence.Hash(evidence.Timeless(raw)) != k.hash:
			return evidence.Wrong(nil, "%s is not what it was: %.500s", k.session, raw)
		}
	}
	return nil
}

// get returns the daemon's answer. It is asked again while its log does not
// answer in time.
func (s *soak) get(ctx context.Context, path string) (raw []byte, err error) {
	err = s.patiently(func() (err error) { raw, err = deployment.Get(ctx, s.api, path); return err })
	return raw, err
}
