//go:build unix

package main

import (
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// play is the whole life of a session of one kind.
type play func(session string, r *rand.Rand)

// kindOf says of which kind the sessions of a slot are: of five two are
// producers', two are runs, one is a chat.
func (s *soak) kindOf(slot int) play {
	return []play{s.produce, s.work, s.produce, s.work, s.chat}[slot%5]
}

// wrong reports, once, whether something is to be done wrong on purpose.
func (s *soak) wrong(what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inject != what || s.did || time.Since(deployment.Began) < 15*time.Second {
		return false
	}
	s.did = true
	return true
}

func (s *soak) took(all *deployment.Samples, began time.Time) {
	d := time.Since(began)
	s.mu.Lock()
	defer s.mu.Unlock()
	*all = append(*all, d)
}
