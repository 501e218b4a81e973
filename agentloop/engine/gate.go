package engine

import "context"

// maxUsers is how many calls of a session use its workspace at once.
const maxUsers = 8

// gate lets users in together, or one alone.
type gate struct {
	users chan struct{} // holds one for each that is in
	alone chan struct{} // held by who waits to be in alone
	using int           // who is in or waits, or is about to; the loop's
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
