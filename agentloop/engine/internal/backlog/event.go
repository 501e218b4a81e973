package backlog

import (
	"context"

	"github.com/helixd/helixd/agentloop"
)

// Event is something that hooks are notified of.
type Event struct {
	Name string
	// Of returns a hook's function for the event, or nil.
	Of func(*agentloop.Hooks) func(context.Context, *agentloop.HookContext)
	// Chain are the hooks that have one, in their order.
	Chain []*agentloop.Hooks
}

// hook is a function of hooks that takes a payload.
type hook[P any] = func(context.Context, *agentloop.HookContext, P)

// newEvent is the event with a payload; pick finds the function for it.
func newEvent[P any](name string, p P, pick func(*agentloop.Hooks) hook[P]) Event {
	return Event{Name: name, Of: func(hooks *agentloop.Hooks) func(context.Context, *agentloop.HookContext) {
		f := pick(hooks)
		if f == nil {
			return nil
		}
		return func(ctx context.Context, h *agentloop.HookContext) { f(ctx, h, p) }
	}}
}

// For returns the event for those of the hooks that handle it, and whether there
// are any.
func (ev Event) For(hooks []*agentloop.Hooks) (Event, bool) {
	ev.Chain = nil
	for _, one := range hooks {
		if ev.Of(one) != nil {
			ev.Chain = append(ev.Chain, one)
		}
	}
	return ev, len(ev.Chain) > 0
}
