package scripted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Options are the settings of a model. The zero value says each word at once.
type Options struct {
	Name  string        // in answers; empty means "scripted"
	Delay time.Duration // between two pieces of an answer
	Words int           // in a piece; 0 means 1
}

type script struct {
	turns []Turn
	opts  Options
}

// New returns a model that says turns. It panics if there are none. The model
// is safe for concurrent use; turns must not be changed any more.
func New(turns []Turn, opts *Options) model.Model {
	if len(turns) == 0 {
		panic("scripted: no turns")
	}
	s := &script{turns: slices.Clone(turns)}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.Name = cmp.Or(s.opts.Name, "scripted")
	s.opts.Words = max(s.opts.Words, 1)
	return s
}

// Name implements [model.Named].
func (s *script) Name() string { return s.opts.Name }

// Provider implements [model.Provided].
func (*script) Provider() string { return "scripted" }

// Generate says the turn whose number, from 0, is that of the assistant's
// messages after the last user message, or the last turn if there are fewer.
// See [model.Model].
func (s *script) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	number := answered(req.Messages)
	turn := s.turns[min(number, len(s.turns)-1)]
	for i, event := range s.events(turn, number) {
		if err := s.wait(ctx, i); err != nil {
			return model.Answer{}, err
		}
		if err := emit(event); err != nil {
			return model.Answer{}, err
		}
	}
	if turn.Err != nil {
		failure := *turn.Err
		return model.Answer{}, &failure
	}
	return model.Answer{Model: s.opts.Name, StopReason: turn.stopReason(), Usage: turn.usage()}, nil
}

// answered counts the assistant's messages after the last user message.
func answered(messages []model.Message) int {
	n := 0
	for _, m := range slices.Backward(messages) {
		switch m.Role {
		case model.RoleUser:
			return n
		case model.RoleAssistant:
			n++
		}
	}
	return n
}

// wait lets the delay before the i-th piece pass, unless ctx ends first.
func (s *script) wait(ctx context.Context, i int) error {
	if ctx.Err() == nil && i > 0 && s.opts.Delay > 0 {
		_ = eventlog.Sleep(ctx, s.opts.Delay) // below
	}
	if ctx.Err() != nil {
		return model.ContextError(ctx)
	}
	return nil
}

// events are the pieces of turn, which is the one with that number.
func (s *script) events(turn Turn, number int) []model.Event {
	var out []model.Event
	for _, piece := range pieces(turn.Reasoning, s.opts.Words) {
		out = append(out, model.ReasoningDelta{Text: piece})
	}
	for _, piece := range pieces(turn.Text, s.opts.Words) {
		out = append(out, model.TextDelta{Text: piece})
	}
	for i, call := range turn.ToolCalls {
		id := call.ID
		id = cmp.Or(id, fmt.Sprintf("call_%d_%d", number, i))
		arguments := string(call.Arguments)
		if call.Arguments == nil {
			arguments = "{}"
		}
		out = append(out, model.ToolCallStart{Call: i, ID: id, Name: call.Name})
		for _, piece := range pieces(arguments, s.opts.Words) {
			out = append(out, model.ToolCallDelta{Call: i, Text: piece})
		}
		out = append(out, model.ToolCallEnd{Call: i})
	}
	return out
}

func (t Turn) stopReason() fact.StopReason {
	switch {
	case t.StopReason != "":
		return t.StopReason
	case len(t.ToolCalls) > 0:
		return fact.StopToolUse
	default:
		return fact.StopEndTurn
	}
}

func (t Turn) usage() fact.TokenUsage {
	u := t.Usage
	u.Total = cmp.Or(u.Total, u.Prompt+u.Completion)
	return u
}
