package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

var errExcess = &model.Error{
	Code: agentloop.CodeTooManyCalls, Message: fmt.Sprintf("the model asked for more than %d tool calls at once", agentloop.MaxCalls),
}

// errTooLong is the error of an answer that no record can hold.
var errTooLong = &model.Error{
	Code: agentloop.CodeTooManyCalls, Message: fmt.Sprintf("the model's answer has more than %d bytes", eventlog.MaxPayload),
}

// leastPart is what a part of an answer has in a record beside its content, at least, in bytes.
const leastPart = len(`{"text":""},`)

// sizeOf returns what an event adds to the content of an answer, in bytes.
func sizeOf(ev model.Event) int {
	switch ev := ev.(type) {
	case model.TextDelta:
		return len(ev.Text)
	case model.ReasoningDelta:
		return len(ev.Text)
	case model.ToolCallDelta:
		return len(ev.Text)
	case model.PartEnd:
		return len(ev.Data)
	case model.Source:
		return len(ev.URL) + len(ev.MediaType) + len(ev.Title) + len(ev.Filename)
	case model.File:
		return len(ev.URL) + len(ev.MediaType) + len(ev.Filename) + len(ev.Data)
	}
	return 0
}

// source writes what the model cites. Its id is unique in the turn, which is
// one message to clients.
func (a *modelAnswer) source(ctx context.Context, ev model.Source) error {
	if err := a.end(ctx, nil); err != nil {
		return err
	}
	s := &fact.Source{
		ID: fmt.Sprintf("source_%d_%d", a.step, len(a.parts)), URL: ev.URL, MediaType: ev.MediaType, Title: ev.Title,
		Filename: ev.Filename,
	}
	a.parts = append(a.parts, &partText{source: s})
	base := a.r.base(a.step)
	if s.URL != "" {
		return a.write(ctx, &eventlog.SourceURL{SourceID: s.ID, URL: s.URL, Title: optional(s.Title), Base: base})
	}
	return a.write(ctx, &eventlog.SourceDocument{
		SourceID: s.ID, MediaType: s.MediaType, Title: s.Title, Filename: optional(s.Filename), Base: base,
	})
}

// file writes a file that the model has generated.
func (a *modelAnswer) file(ctx context.Context, ev model.File) error {
	if err := a.end(ctx, nil); err != nil {
		return err
	}
	f := &fact.MessageFile{Data: ev.URL, MediaType: ev.MediaType, Filename: ev.Filename}
	a.parts = append(a.parts, &partText{file: f, data: ev.Data})
	return a.write(ctx, &eventlog.File{
		URL: f.Data, MediaType: f.MediaType, Filename: optional(f.Filename), Base: a.r.base(a.step),
	})
}

// optional is a field that is left out if it is zero.
func optional[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}

// turnParts is the answer as it is recorded.
func (a *modelAnswer) turnParts(stop fact.StopReason) []fact.TurnPart {
	parts := make([]fact.TurnPart, 0, len(a.parts))
	for i, p := range a.parts {
		part := fact.TurnPart{Source: p.source, File: p.file, ProviderData: p.data}
		switch p.kind {
		case projector.PartialText:
			part.Text = p.text.String()
		case projector.PartialReasoning:
			part.Reasoning = p.text.String()
		case projector.PartialToolCall:
			last := i == len(a.parts)-1
			part.ToolCall = &fact.ToolCall{
				ID: p.call.id, Name: p.call.name, Arguments: arguments(p.call.args.String(), last && cutsOff(stop)),
			}
		}
		parts = append(parts, part)
	}
	return parts
}

// MaxArgumentDepth leaves room for the records that hold arguments.
const MaxArgumentDepth = eventlog.MaxDepth - 20

// cutsOff reports whether an answer that stops so may end within a call.
func cutsOff(stop fact.StopReason) bool {
	return stop == fact.StopMaxTokens || stop == fact.StopContentFilter
}

// arguments returns a model's arguments as JSON of valid UTF-8: as they are, or as a
// string that holds them. None at all are an empty object, or, of a call that may be
// cut off before its arguments, an empty string: the tool must not run with
// arguments that the model has not written.
func arguments(text string, cutOff bool) json.RawMessage {
	if strings.TrimSpace(text) == "" {
		if cutOff {
			return json.RawMessage(`""`)
		}
		return json.RawMessage("{}")
	}
	if raw := []byte(strings.ToValidUTF8(text, string(utf8.RuneError))); json.Valid(raw) && eventlog.Depth(raw) <= MaxArgumentDepth {
		return raw
	}
	quoted, _ := json.Marshal(text)
	return quoted
}
