package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// Part is an element of a UI message stream, as AI SDK clients get it.
type Part struct {
	// Sequence is the record up to which the client has everything when it has
	// this part and those before it, and Frames how many parts it has of the
	// next record that makes any. Both are 0 if no record makes the part: the
	// client has come no further than with the part before it.
	Sequence uint64
	Frames   int
	Data     json.RawMessage // an object with a type
}

// ChatRequest is what a chat client posts: its conversation, of which the last
// message counts.
type ChatRequest struct {
	ID        string          `json:"id"`
	SessionID string          `json:"sessionId,omitempty"` // empty: ID
	Messages  []api.UIMessage `json:"messages"`
	Trigger   string          `json:"trigger,omitempty"`   // submit-message, also if empty, or regenerate-message
	MessageID string          `json:"messageId,omitempty"` // the message that is gone on with, or asked for again
	AgentType string          `json:"agentType,omitempty"` // who answers in a new session; empty: the default agent
	UserID    string          `json:"userId,omitempty"`    // whose the session is, if it is new; at most 256 bytes
	Tags      []string        `json:"tags,omitempty"`      // what it is found by; at most 32 of at most 256 bytes
	Metadata  json.RawMessage `json:"metadata,omitempty"`  // of the user message, a JSON object
	// TextParts asks for TextStreamParts instead of UI message parts.
	TextParts bool `json:"-"`
}

// UserMessage is a user's message of nothing but text, under an id of the
// client's own.
func UserMessage(id, text string) api.UIMessage {
	part, _ := json.Marshal(struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"text", text})
	return api.UIMessage{ID: id, Role: "user", Parts: []json.RawMessage{part}}
}

// Chat does what the client's messages ask for, and yields the parts that come
// of it. Unless an error is last, the stream is complete.
//
// It is one connection. If that breaks off ([ErrStreamDropped]),
// [Client.ChatStream] continues after the last part that has a Sequence or
// Frames. It is not repeated: a message could be sent twice.
func (c *Client) Chat(ctx context.Context, r ChatRequest) iter.Seq2[Part, error] {
	k := post("chat", false, r)
	return c.parts(ctx, k, r.TextParts)
}

// ChatPosition says where a chat client continues.
type ChatPosition struct {
	// From and Frames are the last part's Sequence and Frames that are not both
	// 0. If both are 0, the client gets the whole message.
	From   uint64
	Frames int
	// Resync has a data-stream-resync part come first, which has the client
	// load its messages again.
	Resync bool
	// MessageID is the id that the client knows the message by; empty: none.
	MessageID string
	// TextParts asks for TextStreamParts instead of UI message parts.
	TextParts bool
}

// ChatStream yields the parts of the assistant's message that is under way, of
// one connection like [Client.Chat]. If nothing is, there is no part and no
// error.
func (c *Client) ChatStream(ctx context.Context, sessionID string, p ChatPosition) iter.Seq2[Part, error] {
	k := get("stream", nil).of("chat", sessionID)
	k.Header = map[string]string{}
	at := strconv.FormatUint(p.From, 10)
	if p.Frames > 0 {
		at += "." + strconv.Itoa(p.Frames)
	}
	switch {
	case p.Resync:
		k.Header[api.HeaderResumeFrom] = at
	case p.From > 0, p.Frames > 0:
		k.Header[api.HeaderLastEventID] = at
	}
	if p.MessageID != "" {
		k.Header[api.HeaderExistingMessage] = p.MessageID
	}
	return c.parts(ctx, k, p.TextParts)
}

func (c *Client) parts(ctx context.Context, k request, textParts bool) iter.Seq2[Part, error] {
	k.Accept = remotehttp.EventStream
	if textParts {
		k.Query = url.Values{"format": {"text-stream-part"}}
	}
	return func(yield func(Part, error) bool) {
		var stream error // the error that ends an open connection: it is not repeated
		err := c.do(ctx, k, func(a *remotehttp.Response) error {
			switch {
			case a.Status() == http.StatusNoContent:
				return nil
			case !a.Is(remotehttp.EventStream):
				return fmt.Errorf("%w: it is not an event stream", ErrMalformed)
			}
			stream = readParts(a, yield)
			return nil
		})
		if err == nil {
			err = stream
		}
		if err != nil {
			yield(Part{}, err)
		}
	}
}

// readParts returns nil when the stream is complete or the consumer has left.
func readParts(a *remotehttp.Response, yield func(Part, error) bool) error {
	for raw, err := range a.RawEvents() {
		switch {
		case err != nil:
			return err
		case string(raw.Data) == "[DONE]":
			return nil
		case !json.Valid(raw.Data):
			return fmt.Errorf("%w: a part is no JSON", ErrMalformed)
		}
		part := Part{Data: raw.Data}
		sequence, frames, _ := strings.Cut(raw.ID, ".")
		part.Sequence, _ = strconv.ParseUint(sequence, 10, 64) // 0 if there is none
		part.Frames, _ = strconv.Atoi(frames)
		if !yield(part, nil) {
			return nil
		}
	}
	return nil
}

// ChatSubmitToolResult is [Client.SubmitToolResult], after which the session
// continues by itself if nothing else is open.
func (c *Client) ChatSubmitToolResult(ctx context.Context, s Submission) (api.Submitted, error) {
	return fetch(ctx, c, post("submit-tool-result", true, s.body("")).of("chat", s.SessionID), isSubmitted)
}

// ChatInterrupt is [Client.Interrupt] for callers who may only chat.
func (c *Client) ChatInterrupt(ctx context.Context, sessionID, reason string) error {
	return c.chatStop(ctx, "interrupt", sessionID, reason)
}

// ChatAbort is [Client.Abort] for callers who may only chat.
func (c *Client) ChatAbort(ctx context.Context, sessionID, reason string) error {
	return c.chatStop(ctx, "abort", sessionID, reason)
}

func (c *Client) chatStop(ctx context.Context, route, sessionID, reason string) error {
	_, err := fetch[struct{}](ctx, c, post(route, true, stop{Reason: reason}).of("chat", sessionID), nil)
	return err
}
