package model_test

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
)

// echo is a model of one's own: it streams its answer while it has it, and
// returns what the answer was in all.
type echo struct{}

func (echo) Generate(_ context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	last := req.Messages[len(req.Messages)-1]
	for _, piece := range []string{"You said: ", last.Content} {
		if err := emit(model.TextDelta{Text: piece}); err != nil {
			return model.Answer{}, err
		}
	}
	return model.Answer{Model: "echo", StopReason: fact.StopEndTurn}, nil
}

func ExampleModel() {
	var m model.Model = echo{}
	answer, err := m.Generate(context.Background(), model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Content: "hello"}},
	}, func(e model.Event) error {
		fmt.Printf("%+v\n", e)
		return nil
	})
	fmt.Println(answer.StopReason, err)
	// Output:
	// {Text:You said: }
	// {Text:hello}
	// end_turn <nil>
}
