package integration_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/modeltest"
)

// conversation is what a model is given.
type conversation struct {
	Messages []struct{ Role, Content string }
}

// reminder is how a message begins by which an agent is reminded of memories.
const reminder = "What you remember that may matter here:\n"

// reminded are the memories in the conversation.
func (c conversation) reminded() (memories []string) {
	for _, m := range c.Messages {
		text, ok := strings.CutPrefix(m.Content, reminder)
		for line := range strings.Lines(text) {
			if memory, listed := strings.CutPrefix(line, "- "); ok && listed {
				memories = append(memories, strings.TrimSpace(memory))
			}
		}
	}
	return memories
}

// asked is what the user has said last, and how often the model has answered
// since.
func (c conversation) asked() (text string, answers int) {
	for _, m := range slices.Backward(c.Messages) {
		switch {
		case m.Role == "assistant":
			answers++
		case m.Role == "user" && !strings.HasPrefix(m.Content, reminder):
			return m.Content, answers
		}
	}
	return "", answers
}

// newModel runs a model that answers a conversation with what next returns, and
// returns its base URL.
func newModel(t *testing.T, next func(conversation) modeltest.Stream) string {
	t.Helper()
	return modeltest.ServeFunc(t, func(body []byte) modeltest.Stream {
		var c conversation
		if err := json.Unmarshal(body, &c); err != nil {
			return modeltest.Failure(http.StatusBadRequest, `{"error":{"message":"`+err.Error()+`"}}`)
		}
		return next(c)
	}).URL + "/v1"
}

// call is a call of a tool.
type call struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

// reply is a model's answer: what it says, or the tools that it calls.
func reply(text string, calls ...call) modeltest.Stream {
	type object = map[string]any
	delta, finish := object{"content": text}, "stop"
	if len(calls) > 0 {
		var all []any
		for i, c := range calls {
			args, _ := json.Marshal(c.Args)
			all = append(all, object{"index": i, "id": rand.Text(), "type": "function", "function": object{"name": c.Name, "arguments": string(args)}})
		}
		delta, finish = object{"tool_calls": all}, "tool_calls"
	}
	var events []string
	for _, choice := range []object{{"index": 0, "delta": delta}, {"index": 0, "delta": object{}, "finish_reason": finish}} {
		event, _ := json.Marshal(object{"choices": []any{choice}})
		events = append(events, string(event))
	}
	return modeltest.Events(events...)
}

// steps is the input of an obedient model: the calls of each step.
func steps(all ...[]call) string {
	text, _ := json.Marshal(all)
	return string(text)
}

// oneByOne are steps of one call each.
func oneByOne(calls ...call) string {
	var all [][]call
	for _, c := range calls {
		all = append(all, []call{c})
	}
	return steps(all...)
}

// obedient is a model that does what its user says, in steps.
func obedient(c conversation) modeltest.Stream {
	var told [][]call
	text, answers := c.asked()
	if err := json.Unmarshal([]byte(text), &told); err != nil || answers >= len(told) {
		return reply("That is all.")
	}
	return reply("", told[answers]...)
}

// say says something in a session, which it begins if there is none, and returns
// what the agent answers in the end.
func (d *daemon) say(session, agent, user, text string) (answer string) {
	d.t.Helper()
	body := map[string]any{"id": session, "agentType": agent, "messages": []any{
		map[string]any{"id": rand.Text(), "role": "user", "parts": []any{map[string]any{"type": "text", "text": text}}},
	}}
	if user != "" {
		body["userId"] = user
	}
	status, stream := d.insist(http.MethodPost, "/chat", body)
	require.Equal(d.t, http.StatusOK, status, "%s", stream)
	d.waitFor(session, "completed")
	answer, _ = sessionState(d, session)["output"].(string)
	return answer
}

// results are what the calls of a session gave, in their order: a result as
// JSON, or an error as text.
func (d *daemon) results(session string) (all []string) {
	d.t.Helper()
	var s struct {
		State struct {
			Messages []struct {
				Role   string
				Result json.RawMessage
				Error  string
			}
		}
	}
	d.into("/sessions/"+session+"/state", &s)
	for _, m := range s.State.Messages {
		switch {
		case m.Error != "":
			all = append(all, m.Error)
		case m.Role == "tool":
			all = append(all, string(m.Result))
		}
	}
	return all
}

// into decodes what is at a path.
func (d *daemon) into(path string, v any) {
	d.t.Helper()
	status, answer := d.insist(http.MethodGet, path, nil)
	require.Equal(d.t, http.StatusOK, status, "%s", answer)
	require.NoError(d.t, json.Unmarshal(answer, v))
}

// insist asks, with a JSON body, until the log has a leader to answer: before, a
// request is refused, or nobody knows what became of it.
func (d *daemon) insist(method, path string, body any) (status int, answer []byte) {
	d.t.Helper()
	var raw []byte
	if body != nil {
		var err error
		raw, err = json.Marshal(body)
		require.NoError(d.t, err)
	}
	for began := time.Now(); ; {
		resp, answer, err := askWhole(d.t.Context(), method, d.url+path, string(raw), "Content-Type", "application/json")
		require.NoError(d.t, err)
		if resp.StatusCode != http.StatusServiceUnavailable || time.Since(began) > clusterPatience {
			return resp.StatusCode, answer
		}
	}
}
