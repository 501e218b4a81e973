package engine

import (
	"context"
	"sync"
)

// maxUsers is how many calls of a session use its workspace at once.
const maxUsers = 8

// gate lets users in together, or one alone.
type gate struct {
	users chan struct{} // holds one for each that is in
	alone chan struct{} // held by who waits to be in alone
	using int           // how many are in, wait, or are about to; guarded by gates.mu
}

func newGate() *gate {
	return &gate{users: make(chan struct{}, maxUsers), alone: make(chan struct{}, 1)}
}

// enter waits to be in, within ctx.
func (g *gate) enter(ctx context.Context) error {
	select {
	case g.users <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *gate) leave() { <-g.users }

// enterAlone waits until nobody is in, within ctx, and lets nobody else in.
func (g *gate) enterAlone(ctx context.Context) error {
	select {
	case g.alone <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for n := range maxUsers {
		if err := g.enter(ctx); err != nil {
			for range n {
				g.leave()
			}
			<-g.alone
			return err
		}
	}
	return nil
}

func (g *gate) leaveAlone() {
	for range maxUsers {
		g.leave()
	}
	<-g.alone
}

// gates are those that are in use, by name. The zero value is ready.
type gates struct {
	mu  sync.Mutex
	all map[string]*gate
}

// of returns a gate for its user until leave. What a user that has been given up
// still does, later users find there.
func (g *gates) of(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.all[name]
	if one == nil {
		if g.all == nil {
			g.all = map[string]*gate{}
		}
		one = newGate()
		g.all[name] = one
	}
	one.using++
	return one
}

// leave undoes of.
func (g *gates) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if one := g.all[name]; one.using > 1 {
		one.using--
	} else {
		delete(g.all, name)
	}
}
