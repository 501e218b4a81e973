package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/uimessage"
)

// ChatOptions configure the chat routes (document 004, Layer B). The zero
// value means the documented defaults.
type ChatOptions struct {
	// DefaultAgent begins sessions for requests that name no agent; empty: the
	// only one that there is, if so.
	DefaultAgent string
	// NoAutoResume leaves a session waiting when POST
	// /chat/{id}/submit-tool-result has answered the last open call.
	NoAutoResume bool
	// NoContentReplay puts an unfinished message into snapshots and histories
	// (document 001, Alternative Mode).
	NoContentReplay bool
	// LooseParts sends what the strict clients of some versions refuse
	// (aisdk.md).
	LooseParts bool
	// StartMetadata and FinishMetadata give the messageMetadata of a stream's
	// start and finish; nil: none. See [StaticMetadata].
	StartMetadata, FinishMetadata func(agentID string) any
	// MessageID names messages, in streams as in histories; nil: msg-{index}
	// (document 001, generateMessageId).
	MessageID uimessage.MessageID
	// ChunkFilter tells which chunks clients see, and must not change them; nil: all.
	ChunkFilter func(eventlog.Chunk) bool
	// ExposeCheckpoints sends checkpoint_created, step_committed and
	// step_discarded as data parts.
	ExposeCheckpoints bool
	// NoResyncOnResume leaves out the stream_resync that begins the answer to
	// X-Resume-From-Sequence (facts 13, C13).
	NoResyncOnResume bool
}

// StaticMetadata is metadata that is the same for all streams.
func StaticMetadata(v any) func(agentID string) any {
	return func(string) any { return v }
}

// check refuses a default agent that there is not.
func (o *ChatOptions) check(loop *engine.Loop) error {
	if o == nil || o.DefaultAgent == "" || slices.Contains(loop.AgentTypes(), o.DefaultAgent) {
		return nil
	}
	return fmt.Errorf("httpapi: chat: there is no agent %q to be the default", o.DefaultAgent)
}

// hides reports whether clients don't see a record.
func (o *ChatOptions) hides(r eventlog.Record) bool {
	if o.ChunkFilter == nil || r.Kind != eventlog.KindChunk {
		return false
	}
	c, err := r.Chunk()
	return err == nil && !o.ChunkFilter(c)
}

// headerAgent names the agent of a chat whose body names none.
const headerAgent = "X-Helix-Agent"

// chatAgent returns who begins a session (config.md). named is what the
// request names, or "".
func (s *Server) chatAgent(named string) (string, error) {
	if agent := cmp.Or(named, s.chat().DefaultAgent); agent != "" {
		return agent, nil
	}
	if all := s.loop.AgentTypes(); len(all) == 1 {
		return all[0], nil
	}
	return "", invalid("agentType", "is required: there is no default agent")
}

// hosted answers for a route of chat where there is none.
func hosted(handle func(*Server, http.ResponseWriter, *request) error) func(*Server, http.ResponseWriter, *request) error {
	return func(s *Server, w http.ResponseWriter, r *request) error {
		if !s.hasChat() {
			return errNoChat
		}
		return handle(s, w, r)
	}
}
