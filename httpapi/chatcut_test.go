package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

// talk is a conversation of a chat client in one session.
type talk struct {
	agent string
	// answer returns the parts that the client sends back when the stream
	// waits, nil when it has nothing more to say.
	answer func(parts []uitest.Part) []uitest.Part
}

// answered returns the client's parts with its answer to a call.
func answered(parts []uitest.Part, call string, with uitest.Part) []uitest.Part {
	var all []uitest.Part
	for _, p := range parts {
		if p["toolCallId"] == call {
			with["type"], with["toolCallId"], with["input"] = p["type"], call, p["input"]
			if p["state"] == "approval-requested" {
				with["approval"].(map[string]any)["id"] = p["approval"].(map[string]any)["id"]
			}
			if by, ok := p["providerExecuted"]; ok {
				with["providerExecuted"] = by
			}
			p = with
		}
		all = append(all, p)
	}
	return all
}

func waitsAs(parts []uitest.Part, call, state string) bool {
	for _, p := range parts {
		if p["toolCallId"] == call {
			return p["state"] == state
		}
	}
	return false
}

func talkers() []agentloop.Agent {
	echo := agentloop.Tool{Name: "echo", Execute: func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
		if err := c.Emit(ctx, "progress", map[string]any{"id": c.ID, "done": true}); err != nil {
			return nil, err
		}
		return args, nil
	}}
	broken := agentloop.Tool{Name: "broken", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		return nil, errors.New("it broke")
	}}
	all := []agentloop.Agent{
		{Name: "texter", Model: scripted.New([]scripted.Turn{{Reasoning: "Let me think about this.", Text: "Hello there, how are you today?"}}, nil)},
		{Name: "worker", Tools: []agentloop.Tool{echo, broken}, Model: scripted.New([]scripted.Turn{
			{Text: "I look.", ToolCalls: []scripted.Call{calling("a", "echo", `{"a":"<b>"}`), calling("b", "echo", `{}`), calling("c", "broken", `{}`)}},
			{Text: "Seen."},
		}, nil)},
		{Name: "faller", MaxRetries: -1, Model: scripted.New([]scripted.Turn{
			{Text: "I fall", Err: &model.Error{Code: "provider_auth_failed", Message: "no"}},
		}, nil)},
		{Name: "filer", OutputSchema: json.RawMessage(`{"type":"object"}`), Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{calling("f", agentloop.FinishTool, `{"n":1}`)}},
		}, nil)},
	}
	return append(all, waitingAgents()...)
}

func talks() map[string]talk {
	decide := func(call string, yes bool) func([]uitest.Part) []uitest.Part {
		return func(parts []uitest.Part) []uitest.Part {
			if !waitsAs(parts, call, "approval-requested") {
				return nil
			}
			return answered(parts, call, uitest.Part{"state": "approval-responded", "approval": map[string]any{"approved": yes}})
		}
	}
	return map[string]talk{
		"text":      {agent: "texter"},
		"tools":     {agent: "worker"},
		"error":     {agent: "faller"},
		"output":    {agent: "filer"},
		"approval":  {agent: "asker", answer: decide("rm", true)},
		"denial":    {agent: "asker", answer: decide("rm", false)},
		"sub-agent": {agent: "parent", answer: decide("inner", true)},
		"client tools": {agent: "locator", answer: func(parts []uitest.Part) []uitest.Part {
			for _, call := range []string{"here", "there"} {
				if waitsAs(parts, call, "input-available") {
					return answered(parts, call, uitest.Part{"state": "output-available", "output": map[string]any{"lat": 1.0}})
				}
			}
			return nil
		}},
	}
}

// chatFrames splits the body of a chat stream; the last one is [DONE].
func chatFrames(t *testing.T, body string) []part {
	t.Helper()
	require.Contains(t, body, "data: [DONE]\n\n")
	return parts(t, body)
}

func readParts(t *testing.T, c *uitest.Client, frames []part) {
	t.Helper()
	for _, f := range frames {
		raw, err := json.Marshal(f.data)
		require.NoError(t, err)
		require.NoError(t, c.Read(raw))
	}
}

// TestAChatCutAnywhereGoesOn: whatever a client has of a stream when it is cut
// off, with what it gets from its position on it has the message that the
// uncut stream makes, which is the one that the history shows.
func TestAChatCutAnywhereGoesOn(t *testing.T) {
	a := newChat(t, talkers())
	for name, talk := range talks() {
		t.Run(name, func(t *testing.T) {
			session := "cut/" + name
			var client uitest.Client // that is never cut off
			body := says(session, talk.agent, "go")
			for {
				got := a.post("/chat", body)
				require.Equal(t, 200, got.status, got.body)
				frames := chatFrames(t, got.body)
				before := client.Clone()
				readParts(t, &client, frames)
				for cut := range frames {
					cutOff := before.Clone()
					readParts(t, cutOff, frames[:cut])
					at := ""
					for _, f := range frames[:cut] {
						if f.id != "" {
							at = f.id
						}
					}
					if at == "" {
						continue // it has nothing of this stream
					}
					cutOff.Reconnect()
					rest := a.rest(session, at)
					readParts(t, cutOff, rest)
					require.Equal(t, uitest.Normal(client.Parts), uitest.Normal(cutOff.Parts), "cut behind %d frames, at %s", cut, at)
				}
				last := frames[len(frames)-1].id
				require.Empty(t, a.rest(session, last), "it has all")
				client.Reconnect()
				if talk.answer == nil {
					break
				}
				parts := talk.answer(client.Parts)
				if parts == nil {
					break
				}
				client.Parts = parts
				raw, err := json.Marshal(parts)
				require.NoError(t, err)
				body = goesOn(session, client.ID, string(raw[1:len(raw)-1]))
			}
			got := a.get("/chat/" + escape(session) + "/messages")
			var shown struct {
				Messages []struct {
					ID    string        `json:"id"`
					Parts []uitest.Part `json:"parts"`
				} `json:"messages"`
			}
			got.decode(t, &shown)
			require.Len(t, shown.Messages, 2)
			require.Equal(t, shown.Messages[1].ID, client.ID)
			require.Equal(t, uitest.Normal(shown.Messages[1].Parts), uitest.Normal(client.Parts))
		})
	}
}

// rest returns what a client gets that resumes from a position; none if there
// is nothing.
func (a *api) rest(session, position string) []part {
	a.t.Helper()
	got := a.get("/chat/"+escape(session)+"/stream", "X-Resume-From-Sequence", position)
	if got.status == http.StatusNoContent {
		return nil
	}
	require.Equal(a.t, 200, got.status, got.body)
	frames := chatFrames(a.t, got.body)
	require.Equal(a.t, "data-stream-resync", frames[0].kind())
	n, err := strconv.ParseFloat(position, 64)
	require.NoError(a.t, err)
	require.Equal(a.t, n, frames[0].data["data"].(map[string]any)["fromSequence"])
	return frames
}
