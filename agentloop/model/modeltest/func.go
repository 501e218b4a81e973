package modeltest

import (
	"context"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
)

// Func is a model made of a function.
type Func func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error)

// Generate calls the function.
func (f Func) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	return f(ctx, req, emit)
}

// Gate is a model that says half of its answer, and the rest when it is let.
type Gate struct{ Open chan struct{} }

// Generate waits between the halves until the gate is open.
func (g Gate) Generate(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	if err := emit(model.TextDelta{Text: "first"}); err != nil {
		return model.Answer{}, err
	}
	select {
	case <-g.Open:
	case <-ctx.Done():
		return model.Answer{}, &model.Error{Code: model.CodeProvider, Message: "cancelled", Cause: ctx.Err()}
	}
	return model.Answer{Model: "gate", StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: ", second"})
}
