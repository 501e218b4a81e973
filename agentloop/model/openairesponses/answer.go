package openairesponses

import (
	"bytes"
	"encoding/json"

	"github.com/openai/openai-go/v3/responses"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog"
)

// answer turns a stream's events into the loop's and keeps what they say about
// the whole.
type answer struct {
	caller     provider.Caller
	emit       func(model.Event) error
	name       string // the model's: as asked for, then as the provider says
	items      map[int64]*item
	calls      int  // begun so far
	grows      bool // text or reasoning grows
	sources    provider.Sources
	refused    bool
	over       bool
	incomplete string // why it is, if it is
	usage      eventlog.TokenUsage
}

// Event takes an event. See [provider.Answer].
func (a *answer) Event(kind string, data []byte) (done bool, err error) {
	if kind == "error" {
		return false, a.caller.Reported(0, data)
	}
	if bytes.Equal(data, []byte("[DONE]")) { // some servers
		return false, nil
	}
	var e responses.ResponseStreamEventUnion
	if err := json.Unmarshal(data, &e); err != nil {
		return false, provider.Unreadable(err)
	}
	switch e.Type {
	case "error":
		return false, a.caller.Reported(0, data)
	case "response.failed":
		return false, a.caller.Reported(0, []byte(e.Response.Error.RawJSON()))
	case "response.created", "response.in_progress":
		a.response(e.Response)
	case "response.completed", "response.incomplete":
		a.response(e.Response)
		if e.Type == "response.incomplete" {
			a.incomplete = e.Response.IncompleteDetails.Reason
		}
		a.over = true
		return true, a.sources.Flush(a.emit)
	}
	return false, a.event(e)
}

// Complete says whether the answer may end.
func (a *answer) Complete() bool { return a.over }

func (a *answer) response(r responses.Response) {
	if r.Model != "" {
		a.name = r.Model
	}
	if r.JSON.Usage.Valid() {
		a.usage = usage(r.Usage)
	}
}

func (a *answer) event(e responses.ResponseStreamEventUnion) error {
	switch e.Type {
	case "response.output_item.added":
		_, err := a.start(e.OutputIndex, e.Item)
		return err
	case "response.output_item.done":
		return a.finish(e.OutputIndex, e.Item)
	case "response.reasoning_summary_part.added":
		return a.endPart(nil) // each part of a summary is one of the answer
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.reasoning(a.item(e.OutputIndex), e.Delta)
	case "response.output_text.delta":
		return a.text(a.item(e.OutputIndex), e.Delta)
	case "response.refusal.delta":
		a.refused = true
		return a.text(a.item(e.OutputIndex), e.Delta)
	case "response.output_text.annotation.added":
		a.sources.Add(citation{e.Annotation.Type, e.Annotation.URL, e.Annotation.Title, e.Annotation.FileID, e.Annotation.Filename}.source())
	case "response.function_call_arguments.delta":
		return a.arguments(a.items[e.OutputIndex], e.Delta)
	}
	return nil // kinds that this version does not know may come at any time
}

// end closes the answer.
func (a *answer) end() model.Answer {
	return model.Answer{Model: a.name, StopReason: a.stopReason(), Usage: a.usage}
}

func (a *answer) stopReason() eventlog.StopReason {
	switch a.incomplete {
	case "":
	case "max_output_tokens":
		return eventlog.StopMaxTokens
	case "content_filter":
		return eventlog.StopContentFilter
	default:
		return eventlog.StopUnknown
	}
	switch {
	case a.refused:
		return eventlog.StopContentFilter
	case a.calls > 0:
		return eventlog.StopToolUse
	default:
		return eventlog.StopEndTurn
	}
}

// usage translates token counts; one below 0 counts as 0. OpenAI's count cached
// and reasoning tokens in.
func usage(u responses.ResponseUsage) eventlog.TokenUsage {
	out := eventlog.TokenUsage{
		Prompt:     max(u.InputTokens, 0),
		Completion: max(u.OutputTokens, 0),
		Reasoning:  max(u.OutputTokensDetails.ReasoningTokens, 0),
		Cached:     max(u.InputTokensDetails.CachedTokens, 0),
		CacheWrite: max(u.InputTokensDetails.CacheWriteTokens, 0),
	}
	out.Total = out.Prompt + out.Completion
	return out
}
