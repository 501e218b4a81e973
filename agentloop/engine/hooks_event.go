package engine

import (
	"context"

	"github.com/helixd/helixd/agentloop"
)

// hookEvent is something that hooks are told.
type hookEvent struct {
	name string
	// of returns a hook's function for the event, or nil.
	of func(*agentloop.Hooks) func(context.Context, *agentloop.HookContext)
	// chain are the hooks that have one, in their order.
	chain []*agentloop.Hooks
}

// newHookEvent is the event with a payload; pick finds the function for it.
func newHookEvent[P any](name string, p P, pick func(*agentloop.Hooks) func(context.Context, *agentloop.HookContext, P)) hookEvent {
	return hookEvent{name: name, of: func(hooks *agentloop.Hooks) func(context.Context, *agentloop.HookContext) {
		f := pick(hooks)
		if f == nil {
			return nil
		}
		return func(ctx context.Context, h *agentloop.HookContext) { f(ctx, h, p) }
	}}
}

// told returns the event for those of the hooks that want to know of it, and
// whether there are any.
func (ev hookEvent) told(hooks []*agentloop.Hooks) (hookEvent, bool) {
	ev.chain = nil
	for _, one := range hooks {
		if ev.of(one) != nil {
			ev.chain = append(ev.chain, one)
		}
	}
	return ev, len(ev.chain) > 0
}
