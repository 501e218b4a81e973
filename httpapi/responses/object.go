package responses

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// header is what a response has beside its output.
type header struct {
	request   *fact.RunRequested // nil: it is not known yet
	agent     string
	kept      kept
	status    string
	reason    string // of an incomplete one
	failure   object // of a failed one
	completed int64  // ms since the epoch
	stop      fact.StopReason
	usage     usage
	approvals map[string]string // by call: the item that asked for its approval
}

// created takes what the request of the run has.
func (h *header) created(what *fact.RunRequested) {
	h.request, h.status = what, statusInProgress
	if what.Client != nil {
		var k kept
		if json.Unmarshal(what.Client, &k) == nil && k.Protocol == protocolName {
			h.kept = k
		}
	}
	if h.kept.Background {
		h.status = statusQueued
	}
}

// usage is the sum of a run's model calls.
type usage struct {
	calls int
	fact.TokenUsage
}

func (u *usage) add(t fact.TokenUsage) {
	u.calls++
	u.TokenUsage = u.Plus(t)
}

func (u usage) show() any {
	if u.calls == 0 {
		return nil
	}
	return object{
		"input_tokens": u.Prompt, "input_tokens_details": object{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite},
		"output_tokens": u.Completion, "output_tokens_details": object{"reasoning_tokens": u.Reasoning},
		"total_tokens": u.Prompt + u.Completion,
	}
}

// defaults are the members of a response that the request may set and that have no effect.
var defaults = object{
	"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0, "top_logprobs": 0, "max_output_tokens": nil,
	"max_tool_calls": nil, "tool_choice": "auto", "parallel_tool_calls": true, "reasoning": object{"effort": nil, "summary": nil},
	"text": object{"format": object{"type": "text"}}, "truncation": "disabled", "service_tier": "default", "safety_identifier": nil,
	"prompt_cache_key": nil, "user": nil,
}

// response returns the whole response as it is now.
func (f *folder) response() object {
	h := &f.state
	o := object{
		"id": responseID(f.session, f.run), "object": "response", "model": h.agent, "status": h.status,
		"completed_at": nil, "error": nil, "incomplete_details": nil, "instructions": nil, "previous_response_id": nil,
		"conversation": nil, "metadata": h.kept.Metadata, "background": h.kept.Background, "usage": h.usage.show(),
	}
	if h.kept.Metadata == nil {
		o["metadata"] = object{}
	}
	for name, value := range defaults {
		o[name] = value
		if given, ok := h.kept.Echo[name]; ok {
			o[name] = given
		}
	}
	o["text"], o["reasoning"] = filled(h.kept.Echo["text"], defaults["text"]), filled(h.kept.Echo["reasoning"], defaults["reasoning"])
	if h.request != nil {
		o["created_at"], o["store"] = h.request.Timestamp/1000, !h.request.Ephemeral
		if h.request.Instructions != "" {
			o["instructions"] = h.request.Instructions
		}
		o["tools"] = toolsShown(h.request.Tools)
	}
	if h.kept.Previous != "" {
		o["previous_response_id"] = h.kept.Previous
	}
	if h.kept.Conversation {
		o["conversation"] = object{"id": conversationID(f.session)}
	}
	if h.completed > 0 {
		o["completed_at"] = h.completed / 1000
	}
	if h.reason != "" {
		o["incomplete_details"] = object{"reason": h.reason}
	}
	if h.failure != nil {
		o["error"] = h.failure
	}
	o["output"] = f.output()
	return o
}

// output returns the items that were not taken back.
func (f *folder) output() []any {
	all := []any{}
	for _, it := range f.items {
		if !it.gone {
			all = append(all, it.show())
		}
	}
	return all
}

// filled returns an object as it was given, with what it lacks of the default.
func filled(given json.RawMessage, byDefault any) any {
	all := object{}
	for k, v := range byDefault.(object) {
		all[k] = v
	}
	_ = json.Unmarshal(given, &all) // an object, or nothing
	return all
}

func toolsShown(tools []fact.ClientTool) []any {
	all := []any{}
	for _, t := range tools {
		shown := object{"type": "function", "name": t.Name, "description": nil, "parameters": nil, "strict": t.Strict}
		if t.Description != "" {
			shown["description"] = t.Description
		}
		if t.InputSchema != nil {
			shown["parameters"] = t.InputSchema
		}
		all = append(all, shown)
	}
	return all
}
