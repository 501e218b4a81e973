package openairesponses

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// streamEvent is an event of a stream, with the members of all kinds.
type streamEvent struct {
	Type        string         `json:"type"`
	OutputIndex provider.Count `json:"output_index"`
	Item        outputItem     `json:"item"`
	Delta       provider.Text  `json:"delta"`
	Annotation  annotation     `json:"annotation"`
	Response    response       `json:"response"`
}

type response struct {
	Model             string          `json:"model"`
	Usage             *tokenCounts    `json:"usage"`
	Error             json.RawMessage `json:"error"`
	IncompleteDetails struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// outputItem is a part of the answer, with the members of all kinds.
type outputItem struct {
	Type             string        `json:"type"`
	ID               string        `json:"id"`
	Name             string        `json:"name"`
	CallID           string        `json:"call_id"`
	Arguments        provider.Text `json:"arguments"`
	Content          outputParts   `json:"content"`
	Phase            string        `json:"phase"`
	Summary          []summaryPart `json:"summary"`
	EncryptedContent string        `json:"encrypted_content"`
	Result           string        `json:"result"`
	OutputFormat     string        `json:"output_format"`
}

type outputPart struct {
	Type        string       `json:"type"`
	Text        string       `json:"text"`
	Refusal     string       `json:"refusal"`
	Annotations []annotation `json:"annotations"`
}

// outputParts are the parts of a message. Some servers send a text in their place.
type outputParts []outputPart

// UnmarshalJSON implements json.Unmarshaler.
func (p *outputParts) UnmarshalJSON(data []byte) error {
	var parts []outputPart
	if provider.Decode(data, &parts) != nil || parts == nil {
		var text provider.Text
		if err := text.UnmarshalJSON(data); err != nil {
			return err
		}
		parts = []outputPart{{Type: "output_text", Text: string(text)}}
	}
	*p = parts
	return nil
}

type annotation struct {
	Type     string `json:"type"`
	URL      string `json:"url"`
	Title    string `json:"title"`
	FileID   string `json:"file_id"`
	Filename string `json:"filename"`
}

// tokenCounts are the counts as servers send them.
type tokenCounts struct {
	InputTokens        provider.Count `json:"input_tokens"`
	OutputTokens       provider.Count `json:"output_tokens"`
	InputTokensDetails struct {
		CachedTokens     provider.Count `json:"cached_tokens"`
		CacheWriteTokens provider.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputTokensDetails struct {
		ReasoningTokens provider.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// answer turns a stream's events into the loop's and keeps what they say about
// the whole.
type answer struct {
	caller     provider.Caller
	emit       func(model.Event) error
	name       string // the model's: as asked for, then as the provider says
	items      map[int64]*item
	finished   map[finished]bool
	calls      int  // begun so far
	grows      bool // text or reasoning grows
	sources    provider.Sources
	refused    bool
	over       bool
	incomplete string // why it is, if it is
	usage      fact.TokenUsage
}

// Event takes an event. See [provider.Answer].
func (a *answer) Event(kind string, data []byte) (done bool, err error) {
	if kind == "error" {
		return false, a.caller.Reported(0, data)
	}
	if bytes.Equal(data, []byte("[DONE]")) { // some servers
		return false, nil
	}
	var e streamEvent
	if err := provider.Decode(data, &e); err != nil {
		return false, provider.Unreadable(err)
	}
	switch e.Type {
	case "error":
		return false, a.caller.Reported(0, data)
	case "response.failed":
		return false, a.caller.Reported(0, e.Response.Error)
	case "response.created", "response.in_progress":
		a.response(e.Response)
	case "response.completed", "response.incomplete":
		a.response(e.Response)
		if e.Type == "response.incomplete" {
			a.incomplete = cmp.Or(e.Response.IncompleteDetails.Reason, "unknown")
		}
		a.over = true
		if err := a.endCalls(); err != nil {
			return false, err
		}
		return true, a.sources.Flush(a.emit)
	}
	return false, a.event(e)
}

// Complete says whether the answer may end.
func (a *answer) Complete() bool { return a.over }

func (a *answer) response(r response) {
	if r.Model != "" {
		a.name = r.Model
	}
	if r.Usage != nil {
		a.usage = r.Usage.total()
	}
}

func (a *answer) event(e streamEvent) error {
	switch e.Type {
	case "response.output_item.added":
		_, err := a.start(int64(e.OutputIndex), e.Item)
		return err
	case "response.output_item.done":
		return a.finish(int64(e.OutputIndex), e.Item)
	case "response.reasoning_summary_part.added":
		return a.endPart(nil) // each part of a summary is one of the answer
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.reasoning(a.item(int64(e.OutputIndex)), string(e.Delta))
	case "response.output_text.delta":
		return a.text(a.item(int64(e.OutputIndex)), string(e.Delta))
	case "response.refusal.delta":
		a.refused = true
		return a.text(a.item(int64(e.OutputIndex)), string(e.Delta))
	case "response.output_text.annotation.added":
		a.sources.Add(e.Annotation.source())
	case "response.function_call_arguments.delta":
		return a.arguments(a.items[int64(e.OutputIndex)], string(e.Delta))
	}
	return nil // kinds that this version does not know may come at any time
}

// end closes the answer.
func (a *answer) end() model.Answer {
	return model.Answer{Model: a.name, StopReason: a.stopReason(), Usage: a.usage}
}

func (a *answer) stopReason() fact.StopReason {
	switch a.incomplete {
	case "":
	case "max_output_tokens":
		return fact.StopMaxTokens
	case "content_filter":
		return fact.StopContentFilter
	default:
		return fact.StopUnknown
	}
	switch {
	case a.refused:
		return fact.StopContentFilter
	case a.calls > 0:
		return fact.StopToolUse
	default:
		return fact.StopEndTurn
	}
}

// total translates token counts; one below 0 counts as 0. OpenAI's count cached
// and reasoning tokens in.
func (u tokenCounts) total() fact.TokenUsage {
	out := fact.TokenUsage{
		Prompt:     int64(max(u.InputTokens, 0)),
		Completion: int64(max(u.OutputTokens, 0)),
		Reasoning:  int64(max(u.OutputTokensDetails.ReasoningTokens, 0)),
		Cached:     int64(max(u.InputTokensDetails.CachedTokens, 0)),
		CacheWrite: int64(max(u.InputTokensDetails.CacheWriteTokens, 0)),
	}
	out.Total = out.Prompt + out.Completion
	return out
}
