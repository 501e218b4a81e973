package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// chunk is an event of a stream.
type chunk struct {
	Model   string       `json:"model"`
	Usage   *tokenCounts `json:"usage"`
	Choices []struct {
		Index        provider.Count `json:"index"`
		Delta        delta          `json:"delta"`
		FinishReason string         `json:"finish_reason"`
	} `json:"choices"`
}

type delta struct {
	Content   content     `json:"content"`
	Refusal   string      `json:"refusal"`
	ToolCalls []callDelta `json:"tool_calls"`
	// Reasoning is in one of these two. Some servers fill both with the same text.
	ReasoningContent string `json:"reasoning_content"`
	Reasoning        string `json:"reasoning"`
}

type callDelta struct {
	Index    *provider.Count `json:"index"`
	ID       string          `json:"id"`
	Function struct {
		Name      string        `json:"name"`
		Arguments provider.Text `json:"arguments"`
	} `json:"function"`
}

// content is the text of an answer. Some servers send a list of parts: their texts are the answer,
// and the other parts, such as references, are left out.
type content string

// UnmarshalJSON implements json.Unmarshaler. Any other JSON is an error: the answer may be in it.
func (c *content) UnmarshalJSON(data []byte) error {
	var text string
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, &text) != nil {
		if json.Unmarshal(data, &parts) != nil {
			return errors.New("the content is neither a text nor a list of parts")
		}
		for _, p := range parts {
			text += p.Text
		}
	}
	*c = content(text)
	return nil
}

func (d callDelta) index() int64 {
	if d.Index == nil {
		return 0
	}
	return int64(*d.Index)
}

// answer turns chunks into events and keeps what they say about the whole.
type answer struct {
	caller  provider.Caller
	emit    func(model.Event) error
	calls   toolCalls
	name    string // the model's, as the provider says
	finish  string // finish_reason
	refused bool
	usage   fact.TokenUsage
}

// Event takes a chunk, the end mark, or an error. See [provider.Answer].
func (a *answer) Event(kind string, data []byte) (done bool, err error) {
	if bytes.HasPrefix(data, []byte("[DONE]")) {
		return true, nil
	}
	if isError(kind, data) {
		return false, a.caller.Reported(0, data)
	}
	var c chunk
	if err := provider.Decode(data, &c); err != nil {
		return false, provider.Unreadable(err)
	}
	return false, a.chunk(c)
}

// Complete says whether the answer may end: its connection may break after
// the finish_reason.
func (a *answer) Complete() bool { return a.finish != "" }

// isError distinguishes an error from a chunk, which may have an empty "error".
func isError(kind string, data []byte) bool {
	if kind == "error" {
		return true
	}
	if !bytes.Contains(data, []byte(`"error"`)) {
		return false
	}
	var head struct {
		Object string          `json:"object"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &head) != nil {
		return false
	}
	switch string(head.Error) {
	case "", "null", `""`:
		return head.Object == "error"
	}
	return true
}

func (a *answer) chunk(c chunk) error {
	if c.Model != "" {
		a.name = c.Model
	}
	if c.Usage != nil {
		a.usage = c.Usage.total()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // one answer was asked for
		}
		if err := a.delta(choice.Delta); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	return nil
}

func (a *answer) delta(d delta) error {
	if text := cmp.Or(d.ReasoningContent, d.Reasoning); text != "" {
		if err := a.emit(model.ReasoningDelta{Text: text}); err != nil {
			return err
		}
	}
	// A refusal is what the model says instead of its answer.
	for _, text := range []string{string(d.Content), d.Refusal} {
		if text == "" {
			continue
		}
		if err := a.emit(model.TextDelta{Text: text}); err != nil {
			return err
		}
	}
	a.refused = a.refused || d.Refusal != ""
	for _, call := range d.ToolCalls {
		if err := a.calls.delta(call, a.emit); err != nil {
			return err
		}
	}
	return nil
}

// Failed is the error of an answer that ends with one.
func (a *answer) Failed() error {
	if a.finish != "error" {
		return nil
	}
	return provider.Broken("the provider ended the answer with an error")
}

// end closes the answer.
func (a *answer) end(asked string) (model.Answer, error) {
	if err := a.calls.end(a.emit); err != nil {
		return model.Answer{}, err
	}
	if a.name == "" {
		a.name = asked
	}
	return model.Answer{Model: a.name, StopReason: a.stopReason(), Usage: a.usage}, nil
}

func (a *answer) stopReason() fact.StopReason {
	if a.refused {
		return fact.StopContentFilter
	}
	switch a.finish {
	case "stop", "":
		// Not every server says tool_calls when there are some.
		if a.calls.any() {
			return fact.StopToolUse
		}
		if a.finish == "" {
			return fact.StopUnknown
		}
		return fact.StopEndTurn
	case "tool_calls", "function_call":
		return fact.StopToolUse
	case "length":
		return fact.StopMaxTokens
	case "content_filter":
		return fact.StopContentFilter
	default:
		return fact.StopUnknown
	}
}
