package fact

import "context"

// Actor is who asked for what a fact records, for the audit of a session. It
// holds no secret.
type Actor struct {
	Token   string `json:"token,omitempty"`     // the token's name in the configuration
	Subject string `json:"subject,omitempty"`   // the claim sub of a JWT
	User    string `json:"user,omitempty"`      // the user on whose behalf the caller acts
	Address string `json:"address,omitempty"`   // the network address that the request came from, without a port
	Request string `json:"requestId,omitempty"` // the request, as its X-Request-Id has it
}

type actorKey struct{}

// WithActor returns a context for what an actor has asked for.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor that a context is for, or nil if it is for none.
func ActorOf(ctx context.Context) *Actor {
	a, ok := ctx.Value(actorKey{}).(Actor)
	if !ok || a == (Actor{}) {
		return nil
	}
	return &a
}

// SetActor records in a fact who asked for it: the actor of ctx, if there is one
// and the fact can hold it, as all but [StreamEnd] can.
func SetActor(ctx context.Context, f Fact) {
	if b, ok := f.(interface{ base() *Base }); ok {
		b.base().By = ActorOf(ctx)
	}
}

// ActorIn returns who asked for a fact, or nil if it does not say.
func ActorIn(f Fact) *Actor {
	if b, ok := f.(interface{ base() *Base }); ok {
		return b.base().By
	}
	return nil
}
