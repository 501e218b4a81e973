// Package model defines what the agent loop asks of a language model, and what it gets back.
// Adapters to providers are its subfolders.
//
// An adapter makes one streaming call and reports it as it comes. It does not
// retry: the loop does, after a marker, since what a failed attempt has
// streamed must be truncated from the log.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog/fact"
)

// Model makes calls to a language model.
type Model interface {
	// Generate makes one call. It hands each piece of the answer to emit, in
	// order and from one goroutine, and returns the complete answer. An error
	// of emit ends the call and is returned as it is; any other error is an
	// *Error.
	Generate(ctx context.Context, req Request, emit func(Event) error) (Answer, error)
}

// Request is one model call.
type Request struct {
	Session  string // the id of the session that asks, a sub-agent's own; no part of the prompt
	System   string
	Messages []Message
	Tools    []ToolSpec
}

// Message is one message of the conversation. Role says which fields count.
type Message struct {
	Role Role

	Content string             // user, tool
	Files   []fact.MessageFile // user

	// Parts are the assistant's answer in its order, as it was recorded; it
	// may have none. They are shared and must not be changed.
	Parts []fact.TurnPart

	ToolCallID string // tool: the call that Content answers
	ToolName   string // tool
	Failed     bool   // tool: Content says why the call failed
}

// Text is the text of an assistant's answer.
func (m Message) Text() string {
	var text strings.Builder
	for _, p := range m.Parts {
		text.WriteString(p.Text)
	}
	return text.String()
}

// Role is the author of a message.
type Role string

// Roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name        string
	Description string
	InputSchema json.RawMessage // JSON Schema of an object
	// Strict asks the provider to give only arguments that fit InputSchema, of
	// which it may then take fewer forms.
	Strict bool
}

// Event is a piece of an answer as it streams: one of the types below.
type Event interface{ event() }

// The pieces of an answer. Call is the position of a tool call within the
// answer, from 0; calls may interleave.
type (
	// TextDelta is a piece of text.
	TextDelta struct{ Text string }
	// ReasoningDelta is a piece of reasoning.
	ReasoningDelta struct{ Text string }
	// PartEnd ends the text or the reasoning that grows, so that more of the
	// same kind is its own part. Data, an object, is kept with the part
	// as its ProviderData; where nothing grows it is its own part. What
	// grows also ends where a piece of another kind begins.
	PartEnd struct{ Data json.RawMessage }
	// Source is something that the model cites: a web page if it has a URL,
	// else a document.
	Source struct{ URL, MediaType, Title, Filename string }
	// File is a file that the model has generated. URL is a data URL or a
	// hosted one; Data is kept as its ProviderData.
	File struct {
		URL, MediaType, Filename string
		Data                     json.RawMessage
	}
	// ToolCallStart begins a tool call. ID is the provider's and may be
	// empty or repeated.
	ToolCallStart struct {
		Call     int
		ID, Name string
	}
	// ToolCallDelta is a piece of a call's JSON arguments.
	ToolCallDelta struct {
		Call int
		Text string
	}
	// ToolCallEnd ends a call's arguments.
	ToolCallEnd struct{ Call int }
)

func (TextDelta) event()      {}
func (ReasoningDelta) event() {}
func (PartEnd) event()        {}
func (Source) event()         {}
func (File) event()           {}
func (ToolCallStart) event()  {}
func (ToolCallDelta) event()  {}
func (ToolCallEnd) event()    {}

// Answer is what the events do not say. The parts of the answer are the
// events' concatenation.
type Answer struct {
	Model      string // as the provider names it
	StopReason fact.StopReason
	Usage      fact.TokenUsage
}

// Error is a classified failure of a call. The part of its code before the first underscore is
// the category.
type Error struct {
	Code       string // one of the codes below
	Message    string // the host, the status, the provider's own words and the setting to look at, at most MaxErrorText bytes; no keys, headers or URLs
	Retryable  bool
	StatusCode int // HTTP status, 0 if there was none
	// RetryAfter is how long the provider asks to wait before a further attempt; 0: it does not
	// say, or asks for more than MaxRetryAfter.
	RetryAfter time.Duration
	Cause      error
}

// MaxRetryAfter is the longest wait that a provider may ask for.
const MaxRetryAfter = 2 * time.Minute

// MaxErrorText is how much of a provider's message is kept, in bytes.
const MaxErrorText = 8 << 10

func (e *Error) Error() string { return e.Code + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Cause }

// ContextError is the error of a call whose context has ended.
func ContextError(ctx context.Context) *Error {
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: CodeTimeout, Message: "the call's deadline has passed", Retryable: true, Cause: err}
	}
	return &Error{Code: CodeProvider, Message: "the call was cancelled", Cause: ctx.Err()}
}

// Error codes.
const (
	CodeRateLimited     = "provider_rate_limited"     // 429; retryable
	CodeOverloaded      = "provider_overloaded"       // 503, 529; retryable
	CodeUnavailable     = "provider_unavailable"      // other 5xx, no connection, a cut stream; retryable
	CodeTimeout         = "provider_timeout"          // 408, deadline; retryable
	CodeAuthFailed      = "provider_auth_failed"      // 401, 403
	CodeInvalidRequest  = "provider_invalid_request"  // 400 and other 4xx
	CodeContextLength   = "provider_context_length"   // the conversation is too long
	CodeContentFiltered = "provider_content_filtered" // refused by the provider
	CodeProvider        = "provider_error"            // anything else
)
