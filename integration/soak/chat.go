//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/evidence"
)

// chat is a conversation of an AI SDK client that loses its connection.
func (s *soak) chat(session string, r *rand.Rand) {
	for turn := range 2 + r.IntN(2) {
		text, ok := s.speak(session, fmt.Sprintf("%s-%d", session, turn), r)
		if !ok {
			return
		}
		if text != spoken {
			s.violate(session, evidence.Wrong(nil, "a chat client got %q", text))
			return
		}
		s.count(func(c *counts) { c.chats++ })
		if !s.sleep(s.ctx, between(r, 2*time.Second, 10*time.Second)) {
			return
		}
	}
	s.close(&ledger{session: session}, r)
}

// speak says something and returns what is answered, over as many connections as
// it takes.
func (s *soak) speak(session, message string, r *rand.Rand) (text string, ok bool) {
	var sure string // up to last
	var last client.ChatPosition
	parts := func(ctx context.Context) func(func(client.Part, error) bool) { // the first connection's
		return s.api.Chat(ctx, client.ChatRequest{
			ID: session, AgentType: agentSpeaker, Messages: []api.UIMessage{client.UserMessage(message, "Well?")},
		})
	}
	anew := false
	for began := time.Now(); ; {
		text = sure
		cut, finished, some, again, slow := 1+r.IntN(25), false, false, false, false
		ctx, hangUp := context.WithCancel(s.ctx)
		for part, err := range parts(ctx) {
			if deployment.Code(err) == api.CodeUnavailable && s.mayBeSlow(began) {
				slow = true
				break
			}
			if err != nil {
				hangUp()
				s.refused(session, "chat", err)
				return "", false
			}
			some = true
			var p struct{ Type, Delta string }
			if err := json.Unmarshal(part.Data, &p); err != nil {
				hangUp()
				s.violate(session, fmt.Errorf("a part %s", part.Data))
				return "", false
			}
			switch p.Type {
			case "text-delta":
				text += p.Delta
			case "finish":
				finished = true
			case "data-stream-resync":
				again = true
			}
			if again {
				break
			}
			if part.Sequence > 0 || part.Frames > 0 {
				last, sure = client.ChatPosition{From: part.Sequence, Frames: part.Frames}, text
			}
			if cut--; cut == 0 && !finished && last != (client.ChatPosition{}) {
				break
			}
		}
		hangUp()
		switch {
		case slow: // the same once more
			continue
		case again: // the disk took so long that the run began again: so does the message
			sure, last, anew = "", client.ChatPosition{}, true
			s.count(func(c *counts) { c.resyncs++ })
		case finished:
			return text, true
		case cut > 0 && !some && anew && sure == "": // it was said again before this client was back
			return s.saidLast(session)
		case cut > 0 && !some: // nothing is left
			return sure, true
		}
		s.count(func(c *counts) { c.reconnects++ })
		if !s.sleep(s.ctx, between(r, 100*time.Millisecond, 2*time.Second)) {
			return "", false
		}
		parts = func(ctx context.Context) func(func(client.Part, error) bool) {
			return s.api.ChatStream(ctx, session, last)
		}
	}
}

// saidLast is the text of the last message of a chat, as a page shows it that is
// loaded now.
func (s *soak) saidLast(session string) (text string, ok bool) {
	raw, err := s.get(s.ctx, "/chat/"+session+"/messages")
	var shown struct {
		Messages []struct {
			Parts []struct{ Type, Text string }
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &shown)
	}
	if s.refused(session, "messages", err) || len(shown.Messages) == 0 {
		return "", false
	}
	for _, p := range shown.Messages[len(shown.Messages)-1].Parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return text, true
}
