package agui_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/snapshot"
)

var show = object{"name": "show", "description": "Shows a place.", "parameters": object{"type": "object", "properties": object{"city": object{"type": "string"}}}}

// checkCuts cuts a stream after each of its events: the rest is exact, and a client that has it
// all is where the others are. A new client is there, too.
func (g *rig) checkCuts(thread string, before *client, all []frame) {
	g.t.Helper()
	for i, f := range all {
		require.NotEmpty(g.t, f.id, "%v", f.event)
		rest := g.rejoin(thread, f.id)
		require.Equal(g.t, all[i+1:], append([]frame{}, rest...), "after %s", f.id)
	}
	resp := g.open("GET", "/ag-ui/brain/"+thread, "", "Last-Event-ID", all[0].id)
	require.Equal(g.t, all[1:], append([]frame{}, frames(g.t, resp)...))
	fresh := newClient(g.t)
	fresh.takeAll(g.rejoin(thread, ""))
	require.True(g.t, fresh.over)
	require.Equal(g.t, before.last, fresh.last)
	same(g.t, before, fresh)
	require.Empty(g.t, g.rejoin(thread, fresh.saw), "there is nothing after the last event")
}

// same reports that two clients have the same conversation and state.
func same(t *testing.T, a, b *client) {
	t.Helper()
	require.Equal(t, comparable(a), comparable(b))
	require.Equal(t, a.state, b.state)
}

// comparable leaves out the white space of arguments.
func comparable(c *client) (all []string) {
	for _, m := range c.conversation() {
		raw, _ := json.Marshal(m)
		var o object
		_ = json.Unmarshal(raw, &o)
		if o["content"] == "" {
			delete(o, "content")
		}
		calls, _ := o["toolCalls"].([]any)
		for _, c := range calls {
			fn := c.(object)["function"].(object)
			var args any
			if json.Unmarshal([]byte(fn["arguments"].(string)), &args) == nil {
				fn["arguments"] = args
			}
		}
		raw, _ = json.Marshal(o)
		all = append(all, string(raw))
	}
	return all
}

func TestText(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first := user("u1", "hello")
	c := newClient(t, first)
	all := g.run(c, input("t", "r1", object{"messages": []any{first}, "state": object{"k": "v"}}))
	require.Equal(t, []string{
		"RUN_STARTED", "STATE_SNAPSHOT", "STEP_STARTED", "REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT",
		"REASONING_MESSAGE_END", "REASONING_END", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED", "RUN_FINISHED",
	}, slices.Compact(kinds(all)))
	require.Equal(t, object{"type": "success"}, c.last["outcome"])
	require.Equal(t, "Hello there.", c.last["result"])
	require.EqualValues(t, 15, c.last["usage"].([]any)[0].(object)["totalTokens"])
	require.Equal(t, []object{
		first,
		{"id": "turn-1-step-1-reasoning", "role": "reasoning", "content": "They greet. I too."},
		{"id": "turn-1-step-1", "role": "assistant", "content": "Hello there."},
	}, c.messages)
	require.Equal(t, object{"k": "v"}, c.state)
	g.checkCuts("t", c, all)

	head, err := g.log.Head(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, all, frames(t, g.post(input("t", "r1", object{"messages": []any{first}}))), "the same request streams the same run")
	require.Equal(t, all, frames(t, g.post(input("t", "other", object{"messages": []any{first}}))), "so does one that brings nothing new")
	now, err := g.log.Head(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, head, now, "and nothing is appended")

	// The whole history again, with one new message, and a change of the state.
	c.again()
	second := user("u2", "context")
	c.messages = append(c.messages, second)
	var history []any
	for _, m := range c.messages {
		history = append(history, m)
	}
	all = g.run(c, input("t", "r2", object{
		"messages": history, "state": object{"k": "w"}, "context": []any{object{"description": "The city", "value": "Lisbon"}},
	}))
	require.Equal(t, object{"k": "w"}, c.state)
	require.Equal(t, `"Think.\n\nThe city: Lisbon" with 3 messages and 6 tools`, c.messages[len(c.messages)-1]["content"])
	g.checkCuts("t", c, all)

	// Only the new message.
	c.again()
	third := user("u3", "context")
	c.messages = append(c.messages, third)
	g.run(c, input("t", "r3", object{"messages": []any{third}, "tools": []any{show}}))
	require.Equal(t, `"Think." with 5 messages and 7 tools`, c.messages[len(c.messages)-1]["content"])
}

// Requests with one new message that come at once, as after a client's timeout, begin one run,
// which all of them stream.
func TestOneMessageInRequestsAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	atOnce := func(thread string, in object) {
		t.Helper()
		var all sync.WaitGroup
		statuses := make([]int, 5)
		for i := range statuses {
			raw, err := json.Marshal(input(thread, fmt.Sprint(thread, "-", i), in))
			require.NoError(t, err)
			all.Go(func() {
				resp, err := http.Post(g.url+"/ag-ui/brain", "application/json", bytes.NewReader(raw))
				if err != nil {
					return
				}
				defer resp.Body.Close()
				statuses[i] = resp.StatusCode
				_, _ = io.Copy(io.Discard, resp.Body)
			})
		}
		all.Wait()
		require.Equal(t, []int{200, 200, 200, 200, 200}, statuses)
	}
	runs := func(thread string) int {
		tree, err := snapshot.New(g.log, nil).Head(t.Context(), thread)
		require.NoError(t, err)
		return len(tree.Runs)
	}
	for i := range 5 {
		thread := fmt.Sprint("t", i)
		atOnce(thread, object{"messages": []any{user("u1", "hello")}})
		require.Equal(t, 1, runs(thread), "of a new thread")
		atOnce(thread, object{"messages": []any{user("u2", "call ask")}, "state": object{"k": "v"}})
		require.Equal(t, 2, runs(thread), "the next turn")
		atOnce(thread, object{"messages": []any{user("u3", "hello")}})
		require.Equal(t, 3, runs(thread), "into a turn that waits")
	}
}

func TestServerTools(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for thread, want := range map[string]string{"clock": "noon", "broken": "unexpected EOF", "nothing": `there is no tool "nothing"`} {
		c := newClient(t)
		all := g.run(c, input(thread, "r", object{"messages": []any{user("u", "call "+thread)}}))
		require.Equal(t, "tool", c.find("result-call_1")["role"])
		require.Equal(t, want, c.find("result-call_1")["content"])
		m, made := c.call("call_1")
		require.Equal(t, "Let me see.", m["content"])
		require.JSONEq(t, `{"city":"Lisbon"}`, made["function"].(object)["arguments"].(string))
		g.checkCuts(thread, c, all)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	all := g.run(c, input("t", "r1", object{"messages": []any{user("u", "call count")}, "state": object{"n": 41, "a/b": 1}}))
	require.Equal(t, object{"n": 42.0, "a/b": 1.0}, c.state)
	require.Contains(t, kinds(all), "STATE_DELTA")
	g.checkCuts("t", c, all)
	c.again()
	g.run(c, input("t", "r2", object{"messages": []any{user("u2", "call count")}}))
	require.Equal(t, object{"n": 43.0, "a/b": 1.0}, c.state, "an empty state changes nothing")
	c.again()
	all = g.run(c, input("t", "r3", object{"messages": []any{user("u3", "call count")}, "state": object{"n": 1, "a/b": 2}}))
	require.Equal(t, object{"n": 2.0, "a/b": 2.0}, c.state)
	g.checkCuts("t", c, all)
}

// The front end's tools, and those of the agent that clients execute, are the client's: the run
// ends with their calls, and the next one brings the results.
func TestFrontEndTools(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, tool := range []string{"show", "ask"} {
		c := newClient(t)
		tools := []any{show, object{"name": "ask", "description": "The agent has it, too."}}
		all := g.run(c, input(tool, "r1", object{"messages": []any{user("u", "call "+tool)}, "tools": tools}))
		require.Equal(t, object{"type": "success", "pendingToolCallIds": []any{"call_1"}}, c.last["outcome"])
		require.NotContains(t, kinds(all), "TOOL_CALL_RESULT")
		g.checkCuts(tool, c, all)

		c.again()
		result := object{"id": "my-result", "role": "tool", "toolCallId": "call_1", "content": "a map"}
		c.result(result)
		watcher := newClient(t)
		watcher.messages = slices.Clone(c.messages[:len(c.messages)-1])
		var history []any
		for _, m := range c.messages {
			history = append(history, m)
		}
		all = g.run(c, input(tool, "r2", object{"messages": history, "tools": tools}))
		require.NotContains(t, kinds(all), "TOOL_CALL_RESULT")
		require.Equal(t, `It is "a map".`, c.messages[len(c.messages)-1]["content"])
		g.checkCuts(tool, c, all)
		require.Equal(t, all, frames(t, g.post(input(tool, "r2", object{"messages": history, "tools": tools}))))
		watcher.takeAll(all)
		require.ElementsMatch(t, comparable(c), comparable(watcher), "a client that watches has the result, too")
	}
}

// A user who goes on without executing a call has it end with an error.
func TestAnAbandonedCall(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	g.run(c, input("t", "r1", object{"messages": []any{user("u", "call show")}, "tools": []any{show}}))
	c.again()
	all := g.run(c, input("t", "r2", object{"messages": []any{user("u2", "hello")}}))
	require.NotNil(t, c.find("result-call_1"))
	require.Equal(t, "Hello there.", c.find("turn-1-step-2")["content"])
	g.checkCuts("t", c, all)
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for thread, payload := range map[string]any{"yes": object{"approved": true}, "no": object{"approved": false, "reason": "too dear"}, "true": true, "cancel": nil} {
		c := newClient(t)
		all := g.run(c, input(thread, "r1", object{"messages": []any{user("u", "call pay")}}))
		outcome := c.last["outcome"].(object)
		require.Equal(t, "interrupt", outcome["type"])
		interrupt := outcome["interrupts"].([]any)[0].(object)
		require.Equal(t, "tool_call", interrupt["reason"])
		require.Equal(t, "call_1", interrupt["toolCallId"])
		require.Equal(t, []string{"STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"}, kinds(all)[len(all)-3:])
		g.checkCuts(thread, c, all)
		require.Contains(t, g.refused(400, input(thread, "r2", object{"messages": []any{user("u2", "go on")}})), "open interrupts")
		require.Contains(t, g.refused(400, input(thread, "r2", object{"resume": []any{
			object{"interruptId": interrupt["id"], "status": "resolved", "payload": object{"approved": true, "editedArgs": object{}}},
		}})), "editedArgs")

		c.again()
		entry := object{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
		if payload == nil {
			entry = object{"interruptId": interrupt["id"], "status": "cancelled"}
		}
		answer := input(thread, "r2", object{"resume": []any{entry}})
		all = g.run(c, answer)
		require.NotContains(t, kinds(all), "TOOL_CALL_START", "the call is not shown again")
		result := c.find("result-call_1")["content"].(string)
		if thread == "yes" || thread == "true" {
			require.Equal(t, "paid", result)
		} else {
			require.Contains(t, result, "not approved")
		}
		require.Equal(t, object{"type": "success"}, c.last["outcome"])
		g.checkCuts(thread, c, all)
		require.Equal(t, all, frames(t, g.post(answer)))
		require.Contains(t, g.refused(400, input(thread, "r3", object{"messages": []any{}, "resume": []any{object{"interruptId": "x::y", "status": "cancelled"}}})), "no interrupt")
	}
}

// A sub-agent is an activity. Its calls that wait for the client are the run's.
func TestSubAgents(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	all := g.run(c, input("t", "r1", object{"messages": []any{user("u", `call subagent__helper {"message":"Find it"}`)}}))
	require.Contains(t, kinds(all), "ACTIVITY_SNAPSHOT")
	var activity object
	for _, m := range c.messages {
		if m["role"] == "activity" {
			activity = m["content"].(object)
		}
	}
	require.Equal(t, "helper", activity["agent"])
	require.Equal(t, "completed", activity["status"])
	require.Equal(t, "Helped: Find it", activity["text"])
	require.Contains(t, c.find("result-call_1")["content"], "Helped: Find it")
	g.checkCuts("t", c, all)

	c = newClient(t)
	all = g.run(c, input("asks", "r1", object{"messages": []any{user("u", `call subagent__helper {"message":"ask"}`)}}))
	require.Equal(t, []any{"call_h"}, c.last["outcome"].(object)["pendingToolCallIds"])
	_, made := c.call("call_h")
	require.Equal(t, "ask", made["function"].(object)["name"])
	g.checkCuts("asks", c, all)
	c.again()
	c.result(object{"id": "m", "role": "tool", "toolCallId": "call_h", "content": "me"})
	g.run(c, input("asks", "r2", object{"messages": []any{object{"id": "m", "role": "tool", "toolCallId": "call_h", "content": "me"}}}))
	require.Equal(t, object{"type": "success"}, c.last["outcome"])
	require.Contains(t, c.find("result-call_1")["content"], "me")
}

// What a failed model call has streamed is taken back by a snapshot of the messages.
func TestTextThatIsTakenBack(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	all := g.run(c, input("t", "r", object{"messages": []any{user("u", "flaky")}}))
	require.Contains(t, kinds(all), "MESSAGES_SNAPSHOT")
	require.Equal(t, "Whole.", c.find("turn-1-step-1")["content"])
	require.Equal(t, "", c.find("turn-1-step-1-reasoning")["content"])
	g.checkCuts("t", c, all)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	all := g.run(c, input("t", "r", object{"messages": []any{user("u", "fail")}}))
	require.Equal(t, "RUN_ERROR", c.last["type"])
	require.Contains(t, c.last["message"], "no such thing")
	require.Equal(t, "provider_invalid_request", c.last["code"])
	g.checkCuts("t", c, all)
	c.again()
	g.run(c, input("t", "r2", object{"messages": []any{user("u2", "hello")}}))
	require.Equal(t, "RUN_FINISHED", c.last["type"], "the thread goes on")
}

// A client that joins a run has what came before in snapshots, and the rest as it comes.
func TestJoinARunThatContinues(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	done := make(chan []frame)
	go func() { done <- frames(t, g.post(input("t", "r", object{"messages": []any{user("u", "slow")}}))) }()
	require.Eventually(t, func() bool {
		for r, err := range g.log.Read(t.Context(), "t", 0, 0) {
			if err == nil && r.Type == (*eventlog.TextDelta)(nil).Type() {
				return true
			}
		}
		return false
	}, within, tick)
	joined := make(chan []frame)
	go func() { joined <- g.rejoin("t", "") }()
	require.Contains(t, g.refused(409, input("t", "r9", object{"messages": []any{user("u9", "more")}})), "running")
	close(g.slow)
	c.takeAll(<-done)
	fresh := newClient(t)
	fresh.takeAll(<-joined)
	same(t, c, fresh)
	require.Equal(t, "one two", fresh.find("turn-1-step-1")["content"])
}

// A run that is aborted has been cancelled; clients of earlier versions know no such outcome.
func TestAbort(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, version := range []any{"1.0", nil} {
		thread := "old"
		if version != nil {
			thread = "new"
		}
		done := make(chan []frame)
		go func() {
			done <- frames(t, g.post(input(thread, "r", object{"messages": []any{user("u", "slow")}, "protocolVersion": version})))
		}()
		require.Eventually(t, func() bool { return g.loop.Abort(t.Context(), thread, "enough") == nil }, within, tick)
		c := newClient(t)
		c.takeAll(<-done)
		if version == nil {
			require.Equal(t, "RUN_ERROR", c.last["type"])
			require.Equal(t, "aborted", c.last["code"])
		} else {
			require.Equal(t, object{"type": "cancelled"}, c.last["outcome"])
		}
	}
}

// A conversation that was held elsewhere comes along with a new thread.
func TestAConversationOfElsewhere(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	history := []any{
		object{"id": "s", "role": "system", "content": "Be brief."},
		object{"id": "a", "role": "assistant", "content": "Welcome.", "toolCalls": []any{
			object{"id": "c", "type": "function", "function": object{"name": "f", "arguments": "{}"}},
		}},
		object{"id": "r", "role": "tool", "toolCallId": "c", "content": `{"x":1}`},
		user("u", "context"),
	}
	c := newClient(t)
	for _, m := range history {
		c.messages = append(c.messages, m.(object))
	}
	all := g.run(c, input("t", "r", object{"messages": history}))
	require.Equal(t, `"Think.\n\nBe brief." with 3 messages and 6 tools`, c.messages[len(c.messages)-1]["content"])
	g.checkCuts("t", c, all)
}

// What can't be done is refused before a stream begins, and nothing is made.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	hello := []any{user("u", "hello")}
	for want, in := range map[string]object{
		"threadId":         {"runId": "r", "messages": hello},
		"runId":            {"threadId": "t", "messages": hello},
		"messages":         input("t", "r", nil),
		"messages[0].role": input("t", "r", object{"messages": []any{object{"id": "x", "role": "critic", "content": ""}}}),
		"messages[0].id":   input("t", "r", object{"messages": []any{object{"role": "user", "content": "x"}}}),
		"state":            input("t", "r", object{"messages": hello, "state": 5}),
		"resume[1].interruptId": input("t", "r", object{"messages": hello, "resume": []any{
			object{"interruptId": "x::y", "status": "cancelled"}, object{"interruptId": "x::y", "status": "resolved", "payload": true},
		}}),
		"tools[0]": input("t", "r", object{"messages": hello, "tools": []any{object{"name": "clock", "description": ""}}}),
		"must be data": input("t", "r", object{"messages": []any{object{"id": "x", "role": "user", "content": []any{
			object{"type": "image", "source": object{"type": "url", "value": "http://a.example"}},
		}}}}),
	} {
		require.Contains(t, g.refused(400, in), want)
	}
	resp := g.open("POST", "/ag-ui/nobody", `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"x"}]}`)
	resp.Body.Close()
	require.Equal(t, 404, resp.StatusCode)
	resp = g.open("GET", "/ag-ui/brain/t", "")
	resp.Body.Close()
	require.Equal(t, 404, resp.StatusCode)
	for s, err := range g.log.Sessions(t.Context()) {
		require.NoError(t, err)
		require.Empty(t, s)
	}
	g.run(newClient(t), input("t", "r", object{"messages": hello}))
	resp = g.open("POST", "/ag-ui/helper", `{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"hello"}]}`)
	resp.Body.Close()
	require.Equal(t, 409, resp.StatusCode, "the run of another agent")
	for path, status := range map[string]int{"/ag-ui/helper/t": 404, "/ag-ui/brain/t?after=x": 400, "/ag-ui/brain/t?after=999": 416} {
		resp = g.open("GET", path, "")
		resp.Body.Close()
		require.Equal(t, status, resp.StatusCode, path)
	}
}

// A stream that breaks off ends with an error, since clients take one that merely ends for a
// run that has succeeded.
func TestAServerThatCloses(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	resp := g.post(input("t", "r", object{"messages": []any{user("u", "slow")}}))
	g.api.Close()
	c := newClient(t)
	c.takeAll(frames(t, resp))
	require.Equal(t, "STREAM_BROKEN_OFF", c.last["code"])
	close(g.slow)
}

// A server that does not speak the protocol has none of its routes.
func TestOff(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) { o.Protocols.AGUI = false })
	resp := g.post(input("t", "r", nil))
	defer resp.Body.Close()
	require.Equal(t, 404, resp.StatusCode)
	require.True(t, strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json"))
}
