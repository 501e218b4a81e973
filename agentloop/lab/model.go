package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/lab/lane"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// frozenModel answers in place of an agent's model.
type frozenModel struct {
	f     *frozen
	agent Agent
}

// Name implements [model.Named].
func (m *frozenModel) Name() string { return model.NameOf(m.agent.Model) }

// Generate answers by the script, with the recorded answer or, if that is allowed, by the model.
func (m *frozenModel) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	f, name := m.f, m.agent.Name
	parts := lane.PartsOf(req, m.agent.ModelID, m.agent.OutputSchema)
	f.mu.Lock()
	key := f.keys.Of(req.Messages)
	f.asked[name+" "+key] = parts
	f.mu.Unlock()
	if slices.ContainsFunc(req.Messages, func(t model.Message) bool {
		return t.Role == model.RoleTool && strings.HasPrefix(t.Content, "Error: "+lane.Unrecorded)
	}) {
		return model.Answer{}, missing("a call before was not recorded")
	}
	if m.agent.Scripted {
		answer, err := m.agent.Model.Generate(ctx, req, emit)
		f.count(answer, 0)
		return answer, err
	}
	for _, r := range f.o.Script {
		if f.prior != nil || f.o.Baseline == nil { // the candidate's
			if r.fits(name, req.Messages) {
				answer, err := scripted.New(r.Turns, &scripted.Options{Words: 1 << 20}).Generate(ctx, req, emit)
				f.count(answer, 0)
				return answer, err
			}
		}
	}
	why := f.differs(name, key, parts)
	found, ok := lane.Found{}, false
	if why == "" && !f.live {
		found, ok = f.take(name, req.Session, key, "", func(r lane.Found) bool { return r.Turn != nil })
	}
	switch {
	case ok && found.Turn.Failed != nil:
		failed := found.Turn.Failed
		return model.Answer{}, &model.Error{Code: failed.Code, Message: failed.Error}
	case ok:
		answer := model.Answer{Model: found.Turn.Answer.Model, StopReason: found.Turn.Answer.StopReason, Usage: found.Turn.Answer.Usage}
		f.count(answer, found.Turn.Latency)
		return answer, say(found.Turn.Answer.Parts, emit)
	case f.o.Live && (f.prior != nil || f.o.Baseline == nil || f.live):
		if over := f.spent.over(f.o.Budget); over != "" {
			return model.Answer{}, missing(over)
		}
		began := time.Now()
		answer, err := m.agent.Model.Generate(ctx, req, emit)
		f.spent.add(answer.Usage, f.count(answer, time.Since(began)))
		return answer, err
	case why != "":
		return model.Answer{}, missing("the model's request changed (" + why + "), and models are not live")
	}
	return model.Answer{}, missing("the model was asked something that was not recorded")
}

func missing(why string) *model.Error { return &model.Error{Code: lane.Unrecorded, Message: why} }

// differs says in which parts the request is another one than the baseline's; empty: in none, as
// far as it is known.
func (f *frozen) differs(agent, key string, parts map[string]string) string {
	if f.prior == nil {
		if f.o.Live && f.o.Baseline == nil {
			return "its prompt and tools were not recorded"
		}
		return ""
	}
	f.prior.mu.Lock()
	defer f.prior.mu.Unlock()
	before, ok := f.prior.asked[agent+" "+key]
	if !ok || len(f.o.Script) > 0 {
		return "" // what is not in the records is missing there, and a script does not read prompts
	}
	return strings.Join(changed(before, parts), ", ")
}

// count adds an answer to what the lane took, and returns its cost.
func (f *frozen) count(a model.Answer, latency time.Duration) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	cost := f.o.Prices[a.Model].Cost(a.Usage)
	f.latency += latency
	f.cost += cost
	return cost
}

// fits reports whether the rule answers an agent in a conversation.
func (r Rule) fits(agent string, messages []model.Message) bool {
	if r.Agent != "" && r.Agent != agent {
		return false
	}
	for _, m := range slices.Backward(messages) {
		if m.Role == model.RoleUser && strings.Contains(m.Content, r.When) {
			return true
		}
		if m.Role == model.RoleUser && !strings.HasPrefix(m.Content, "What you remember") {
			return false
		}
	}
	return false
}

// say emits a recorded answer.
func say(parts []fact.TurnPart, emit func(model.Event) error) error {
	var events []model.Event
	calls := 0
	for _, p := range parts {
		switch {
		case p.ToolCall != nil:
			text := string(p.ToolCall.Arguments)
			var raw string
			if json.Unmarshal(p.ToolCall.Arguments, &raw) == nil { // what was no JSON
				text = raw
			}
			events = append(events, model.ToolCallStart{Call: calls, ID: p.ToolCall.ID, Name: p.ToolCall.Name},
				model.ToolCallDelta{Call: calls, Text: text}, model.ToolCallEnd{Call: calls})
			calls++
			continue
		case p.Source != nil:
			events = append(events, model.Source{URL: p.Source.URL, MediaType: p.Source.MediaType, Title: p.Source.Title, Filename: p.Source.Filename})
			continue
		case p.File != nil:
			events = append(events, model.File{URL: p.File.Data, MediaType: p.File.MediaType, Filename: p.File.Filename, Data: p.ProviderData})
			continue
		case p.Reasoning != "":
			events = append(events, model.ReasoningDelta{Text: p.Reasoning})
		case p.Text != "":
			events = append(events, model.TextDelta{Text: p.Text})
		}
		events = append(events, model.PartEnd{Data: p.ProviderData})
	}
	for _, e := range events {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// spent is what the lab itself has spent.
type spent struct {
	began time.Time
	mu    sync.Mutex
	// tokens and cost are of live models and judges.
	tokens int64
	cost   float64
	of     *spent // of which this is a session's part; nil: it is the whole
}

func (s *spent) add(u fact.TokenUsage, cost float64) {
	s.mu.Lock()
	s.tokens += u.Prompt + u.Completion
	s.cost += cost
	s.mu.Unlock()
	if s.of != nil {
		s.of.add(u, cost)
	}
}

// over says which bound is reached; empty: none.
func (s *spent) over(b Budget) string {
	if s.of != nil {
		return s.of.over(b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case b.Tokens > 0 && s.tokens >= b.Tokens:
		return fmt.Sprintf("the lab's budget of %d tokens is spent", b.Tokens)
	case b.Cost > 0 && s.cost >= b.Cost:
		return fmt.Sprintf("the lab's budget of %g is spent", b.Cost)
	case b.Time > 0 && time.Since(s.began) >= b.Time:
		return fmt.Sprintf("the lab's time of %s is over", b.Time)
	}
	return ""
}
