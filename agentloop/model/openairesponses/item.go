package openairesponses

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// item is an output item while it streams. Items may interleave.
type item struct {
	isCall   bool // a function call has begun
	call     int  // its position
	streamed bool // its text or arguments have come as deltas
}

// item is the item at an index, whether or not it was begun.
func (a *answer) item(index int64) *item {
	it := a.items[index]
	if it == nil {
		if a.items == nil {
			a.items = make(map[int64]*item)
		}
		it = &item{}
		a.items[index] = it
	}
	return it
}

// start begins an item.
func (a *answer) start(index int64, i outputItem) (*item, error) {
	delete(a.items, index)
	it := a.item(index)
	if err := a.endPart(nil); err != nil {
		return nil, err
	}
	if i.Type != "function_call" {
		return it, nil
	}
	if i.Name == "" {
		return nil, provider.NamelessCall()
	}
	it.isCall, it.call = true, a.calls
	a.calls++
	return it, a.emit(model.ToolCallStart{Call: it.call, ID: i.CallID, Name: i.Name})
}

// finished is an item that has ended, as its server names it.
type finished struct {
	index int64
	id    string // of the item and of the call
}

// finish ends an item, once. What has not come as deltas is in it.
func (a *answer) finish(index int64, i outputItem) error {
	if key := (finished{index, i.ID + " " + i.CallID}); i.ID != "" {
		if a.finished[key] {
			return nil
		}
		if a.finished == nil {
			a.finished = make(map[finished]bool)
		}
		a.finished[key] = true
	}
	it := a.items[index]
	if it == nil || i.Type == "function_call" && !it.isCall {
		var err error
		if it, err = a.start(index, i); err != nil {
			return err
		}
	}
	delete(a.items, index)
	switch i.Type {
	case "message":
		return a.finishMessage(it, i)
	case "reasoning":
		return a.finishReasoning(it, i)
	case "function_call":
		if !it.streamed {
			if err := a.arguments(it, string(i.Arguments)); err != nil {
				return err
			}
		}
		return a.emit(model.ToolCallEnd{Call: it.call})
	case "image_generation_call":
		if i.Result == "" {
			return nil
		}
		kind := "image/" + cmp.Or(i.OutputFormat, "png")
		if kind == "image/svg" {
			kind = "image/svg+xml"
		}
		return a.emit(model.File{
			URL: "data:" + kind + ";base64," + i.Result, MediaType: kind, Data: partData{ItemID: i.ID}.encode(),
		})
	}
	return nil
}

func (a *answer) finishMessage(it *item, i outputItem) error {
	for _, c := range i.Content {
		a.refused = a.refused || c.Type == "refusal"
		if !it.streamed {
			if err := a.text(nil, c.Text+c.Refusal); err != nil {
				return err
			}
		}
		for _, n := range c.Annotations {
			a.sources.Add(n.source())
		}
	}
	var data json.RawMessage
	if i.Phase != "" && a.grows {
		data = partData{Phase: i.Phase}.encode()
	}
	if err := a.endPart(data); err != nil {
		return err
	}
	return a.sources.Flush(a.emit)
}

func (a *answer) finishReasoning(it *item, i outputItem) error {
	for _, s := range i.Summary {
		if it.streamed {
			break
		}
		if err := a.endPart(nil); err != nil {
			return err
		}
		if err := a.reasoning(nil, s.Text); err != nil {
			return err
		}
	}
	var data json.RawMessage
	if i.EncryptedContent != "" && i.ID != "" {
		data = partData{ItemID: i.ID, Encrypted: i.EncryptedContent}.encode()
	}
	return a.endPart(data)
}

// endCalls ends the calls that have no end. A call whose arguments have not come must not run with none, unless
// the answer's limit has cut it off: the loop refuses such a call.
func (a *answer) endCalls() error {
	for _, index := range slices.Sorted(maps.Keys(a.items)) {
		it := a.items[index]
		if !it.isCall {
			continue
		}
		if stop := a.stopReason(); !it.streamed && stop != fact.StopMaxTokens && stop != fact.StopContentFilter {
			return provider.Broken("the provider did not send the arguments of a tool call")
		}
		if err := a.emit(model.ToolCallEnd{Call: it.call}); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) text(it *item, s string) error { return a.grow(it, s, model.TextDelta{Text: s}) }

func (a *answer) reasoning(it *item, s string) error {
	return a.grow(it, s, model.ReasoningDelta{Text: s})
}

func (a *answer) grow(it *item, s string, e model.Event) error {
	if s == "" {
		return nil
	}
	if it != nil {
		it.streamed = true
	}
	a.grows = true
	return a.emit(e)
}

func (a *answer) arguments(it *item, s string) error {
	if it == nil || !it.isCall || s == "" {
		return nil
	}
	it.streamed = true
	return a.emit(model.ToolCallDelta{Call: it.call, Text: s})
}

// endPart ends what grows.
func (a *answer) endPart(data json.RawMessage) error {
	if !a.grows && data == nil {
		return nil
	}
	a.grows = false
	return a.emit(model.PartEnd{Data: data})
}
