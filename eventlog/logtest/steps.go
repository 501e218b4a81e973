package logtest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// Steps runs operations side by side, one step at a time: between two steps one of them, which
// the seed chooses, continues and all others are held. What has the same seed takes the
// same turns.
type Steps struct {
	rng    *rand.Rand
	actors []*turn
	paused chan bool // the one that has its turn: true, it continues later; false, it has ended
	count  int       // of requests
	digest hash.Hash // of them

	// Fault returns what happens to a message; nil: it is delivered.
	Fault func(point string) Delivery
	// Waits is how many turns a late message lets others have, at most, and Sent
	// notes one until what it returns is called. nil: none, and nobody does.
	Waits func() int
	Sent  func(ctx context.Context) (arrived func())
}

// turn is an operation that is held, or has its turn.
type turn struct {
	resume chan struct{}
	died   bool
}

type turnKey struct{}

// Delivery is what becomes of a message.
type Delivery int

// What may become of a message.
const (
	Delivered  Delivery = iota
	Lost                // it never arrives
	Unanswered          // it arrives, and the answer does not
	Late                // it arrives when its sender has given up
	Died                // it arrives, and its sender has no turn any more
	Stalled             // its sender lets others have so many turns before it sends it
)

// errDied is what a sender that has died would get.
var errDied = errors.New("logtest: its process has died")

func newSteps(rng *rand.Rand) *Steps {
	return &Steps{rng: rng, paused: make(chan bool), digest: sha256.New()}
}

// Digest returns how many requests there were, and a hash of all in their order.
func (s *Steps) Digest() string { return fmt.Sprintf("%d, %x", s.count, s.digest.Sum(nil)[:8]) }

// Go adds an operation. It may be called from another one's turn.
func (s *Steps) Go(ctx context.Context, f func(context.Context)) {
	t := &turn{resume: make(chan struct{})}
	s.actors = append(s.actors, t)
	go func() {
		<-t.resume
		defer func() { s.paused <- false }()
		f(context.WithValue(ctx, turnKey{}, t))
	}()
}

// Run gives turns until all operations have ended.
func (s *Steps) Run() {
	for len(s.actors) > 0 {
		i := s.rng.IntN(len(s.actors))
		s.actors[i].resume <- struct{}{}
		if !<-s.paused {
			s.actors = append(s.actors[:i], s.actors[i+1:]...)
		}
	}
}

// Yield ends the turn of ctx's operation and returns when it has the next one.
func (s *Steps) Yield(ctx context.Context) {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok {
		s.paused <- true
		<-t.resume
	}
}

// Step holds an operation before do, a request to a server. It is what a log under
// test calls.
func (s *Steps) Step(ctx context.Context, point string, do func(context.Context) error) error {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		return do(ctx)
	}
	s.Yield(ctx)
	s.count++
	fmt.Fprintln(s.digest, slices.Index(s.actors, t), point)
	if t.died {
		return errDied
	}
	if s.Fault == nil {
		return do(ctx)
	}
	switch s.Fault(point) {
	case Lost:
		return eventlog.ErrOutcomeUnknown
	case Unanswered:
		_ = do(ctx)
		return eventlog.ErrOutcomeUnknown
	case Late:
		s.late(context.WithoutCancel(ctx), do)
		return eventlog.ErrOutcomeUnknown
	case Stalled:
		s.stall(ctx)
	case Died:
		_ = do(ctx)
		t.died = true
		return errDied
	}
	return do(ctx)
}

// Died reports whether ctx's operation has died: whatever it returns, nobody has got that.
func (s *Steps) Died(ctx context.Context) bool {
	t, ok := ctx.Value(turnKey{}).(*turn)
	return ok && t.died
}

// Restart lets ctx's operation continue if it has died.
func (s *Steps) Restart(ctx context.Context) {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok {
		t.died = false
	}
}

// stall lets others have some turns.
func (s *Steps) stall(ctx context.Context) {
	turns := 0
	if s.Waits != nil {
		turns = s.Waits()
	}
	for ; turns > 0 && len(s.actors) > 1; turns-- {
		s.Yield(ctx)
	}
}

// late has a message arrive later.
func (s *Steps) late(ctx context.Context, do func(context.Context) error) {
	arrived := func() {}
	if s.Sent != nil {
		arrived = s.Sent(ctx)
	}
	s.Go(ctx, func(ctx context.Context) {
		defer arrived()
		s.stall(ctx)
		_ = do(ctx)
	})
}
