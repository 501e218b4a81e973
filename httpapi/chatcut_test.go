package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/integration/testkit"
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
		{Name: "delegator", SubAgents: []agentloop.SubAgent{{Agent: "filer"}}, Approvals: []agentloop.Approval{{Tools: "subagent__*"}},
			Model: scripted.New([]scripted.Turn{
				{Text: "I hand it on.", ToolCalls: []scripted.Call{calling("d", "subagent__filer", `{"message":"file it"}`)}},
				{Text: "Filed."},
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
		"text":                       {agent: "texter"},
		"tools":                      {agent: "worker"},
		"error":                      {agent: "faller"},
		"output":                     {agent: "filer"},
		"approval":                   {agent: "asker", answer: decide("rm", true)},
		"denial":                     {agent: "asker", answer: decide("rm", false)},
		"sub-agent":                  {agent: "parent", answer: decide("inner", true)},
		"sub-agent that is approved": {agent: "delegator", answer: decide("d", true)},
		"sub-agent that is denied":   {agent: "delegator", answer: decide("d", false)},
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

// TestAChatCutAnywhereContinues: after whichever frame a client is cut off, it
// gets exactly the frames that it lacks, in either dialect, and has the message
// of the uncut stream, which is the one that the history shows.
func TestAChatCutAnywhereContinues(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
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
				requireRising(t, frames)
				before := client.Clone()
				readParts(t, &client, frames)
				require.Empty(t, frames[0].id, "no record makes the start")
				for cut := 1; cut < len(frames); cut++ {
					require.NotEmpty(t, frames[cut].id, frames[cut].data)
					cutOff := before.Clone()
					readParts(t, cutOff, frames[:cut+1])
					rest := a.rest(session, frames[cut].id)
					if cut == len(frames)-1 {
						require.Empty(t, rest, "it has all")
						continue
					}
					require.Equal(t, []part(frames[cut+1:]), rest[1:], "cut after %s", frames[cut].id)
					readParts(t, cutOff, rest)
					require.Equal(t, client.Parts, cutOff.Parts)
				}
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

// TestARegeneratedAnswerCutAnywhereContinues: the request truncates the answer before,
// and its stream tells of that. A client that resumes gets the same names.
func TestARegeneratedAnswerCutAnywhereContinues(t *testing.T) {
	t.Parallel()
	a := newChat(t, talkers())
	for _, format := range []string{"", "?format=text-stream-part"} {
		session := "again" + format
		chatFrames(t, a.post("/chat", says(session, "texter", "go")).body)
		got := a.post("/chat"+format, regenerates(session, ""))
		require.Equal(t, 200, got.status, got.body)
		frames := chatFrames(t, got.body)
		requireRising(t, frames)
		resumed := 0
		for cut, f := range frames[:len(frames)-1] {
			if resumed == 0 && f.kind() != "start-step" { // before the message
				continue
			}
			rest := a.rest(session, f.id, format)
			require.Equal(t, []part(frames[cut+1:]), rest[1:], "cut after %s", f.id)
			resumed++
		}
		require.Greater(t, resumed, 5)
	}
}

// requireRising checks the ids of a stream: that of a frame is
// the sequence of its record if it is the record's last one, otherwise the id before
// the record and the number of its frames so far.
func requireRising(t *testing.T, frames []part) {
	t.Helper()
	var before, m uint64
	j := 0
	for _, f := range frames {
		if f.id == "" {
			continue
		}
		whole, some, partly := strings.Cut(f.id, ".")
		n, err := strconv.ParseUint(whole, 10, 64)
		require.NoError(t, err, f.id)
		switch {
		case !partly:
			require.Greater(t, n, m, "%s after %d", f.id, m)
			m, before, j = n, n, 0
		case j == 0:
			require.GreaterOrEqual(t, n, before)
			m, j = n, 1
			require.Equal(t, "1", some)
		default:
			require.Equal(t, m, n)
			j++
			require.Equal(t, strconv.Itoa(j), some)
		}
	}
}

// rest returns what a client gets that resumes from a position; none if there
// is nothing.
func (a *testAPI) rest(session, position string, query ...string) []part {
	a.t.Helper()
	got := a.get("/chat/"+escape(session)+"/stream"+strings.Join(query, ""), "X-Resume-From-Sequence", position)
	if got.status == http.StatusNoContent {
		return nil
	}
	require.Equal(a.t, 200, got.status, got.body)
	frames := chatFrames(a.t, got.body)
	require.Equal(a.t, "data-stream-resync", frames[0].kind())
	require.Empty(a.t, frames[0].id)
	whole, _, _ := strings.Cut(position, ".")
	n, err := strconv.ParseUint(whole, 10, 64)
	require.NoError(a.t, err)
	want := map[string]any{"checkpointId": "", "stepCount": 0.0, "messageCount": 0.0, "fromSequence": 0.0}
	for _, c := range a.tree(session).Checkpoints { // the last one that the client has
		if c.StreamSequence <= n {
			want = map[string]any{
				"checkpointId": c.ID, "stepCount": float64(c.StepCount), "messageCount": float64(c.MessageCount), "fromSequence": float64(c.StreamSequence),
			}
		}
	}
	require.Subset(a.t, frames[0].data["data"], want)
	return frames
}
