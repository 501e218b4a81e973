package chat

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/uimessage"
)

// Options configure the chat routes. The zero
// value means the documented defaults.
type Options struct {
	// DefaultAgent begins sessions for requests that name no agent; empty: the only
	// agent, if there is one only.
	DefaultAgent string
	// NoAutoResume leaves a session waiting when POST
	// /chat/{id}/submit-tool-result has answered the last open call.
	NoAutoResume bool
	// NoContentReplay puts an unfinished message into snapshots and histories.
	NoContentReplay bool
	// LooseParts also sends parts that the strict schemas of some versions of the AI SDK
	// refuse.
	LooseParts bool
	// StartMetadata and FinishMetadata give the messageMetadata of a stream's
	// start and finish; nil: none. See [StaticMetadata].
	StartMetadata, FinishMetadata func(agentID string) any
	// MessageID names messages, in streams as in histories; nil: msg-{index}.
	MessageID uimessage.MessageID
	// ChunkFilter says which chunks clients see, and must not change them; nil: all.
	ChunkFilter func(eventlog.Chunk) bool
	// ExposeCheckpoints sends checkpoint_created, step_committed and
	// step_discarded as data parts.
	ExposeCheckpoints bool
	// NoResyncOnResume leaves out the stream_resync that begins the answer to
	// X-Resume-From-Sequence.
	NoResyncOnResume bool
}

// StaticMetadata returns the same metadata for all streams.
func StaticMetadata(v any) func(agentID string) any {
	return func(string) any { return v }
}

// Check returns an error if the default agent does not exist.
func (o *Options) Check(loop *engine.Loop) error {
	if o == nil || o.DefaultAgent == "" || slices.Contains(loop.AgentTypes(), o.DefaultAgent) {
		return nil
	}
	return fmt.Errorf("httpapi: chat: there is no agent %q to be the default", o.DefaultAgent)
}

// hides reports whether the filter hides a record from clients.
func (o *Options) hides(r eventlog.Record) bool {
	if o.ChunkFilter == nil || r.Kind != eventlog.KindChunk {
		return false
	}
	c, err := r.Chunk()
	return err == nil && !o.ChunkFilter(c)
}

// agentFor returns the agent of a new session (see docs/reference/protocol.md#chat-streams).
// named is the agent that the
// request names, or "".
func (s *Routes) agentFor(named string) (string, error) {
	if agent := cmp.Or(named, s.options().DefaultAgent); agent != "" {
		return agent, nil
	}
	if all := s.loop.AgentTypes(); len(all) == 1 {
		return all[0], nil
	}
	return "", web.Invalid("agentType", "is required: there is no default agent")
}

// Errors of the chat routes.
var (
	ErrNoChat    = errors.New("httpapi: no chat here")
	ErrNoMessage = errors.New("httpapi: no such message")
)

// Hosted returns a handler that answers ErrNoChat if the server has no chat.
func Hosted(handle func(*Routes, http.ResponseWriter, *web.Request) error) func(*Routes, http.ResponseWriter, *web.Request) error {
	return func(s *Routes, w http.ResponseWriter, r *web.Request) error {
		if s.current.Load() == nil {
			return ErrNoChat
		}
		return handle(s, w, r)
	}
}
