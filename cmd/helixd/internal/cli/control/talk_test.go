package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/httpapi/api"
)

// talkers are agents that answer, wait for an approval or for two, or for that of a call whose id a
// terminal can't show, wait for their client, fail, and never come to an end.
func talkers() []agentloop.Agent {
	agent := func(name string, o *scripted.Options, turns ...scripted.Turn) agentloop.Agent {
		return agentloop.Agent{Name: name, SystemPrompt: "s", Model: scripted.New(turns, o)}
	}
	calls := func(tool string, n int) (all []scripted.Call) {
		for range n {
			all = append(all, scripted.Call{Name: tool, Arguments: json.RawMessage(`{"what":"drafts"}`)})
		}
		return all
	}
	type input struct {
		What string `json:"what"`
	}
	remove := agentloop.NewTool("remove", "Removes.", func(_ context.Context, _ *agentloop.Call, in input) (string, error) {
		return in.What + " are gone", nil
	})
	remove.RequireApproval = agentloop.AlwaysApprove
	place := agentloop.Tool{
		Name: "place", Description: "Where the user is.", Client: true,
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"lat":{"type":"number"}},"required":["lat"]}`),
	}
	janitor := agent("janitor", nil, scripted.Turn{Text: "May I?", ToolCalls: calls("remove", 1)}, scripted.Turn{Text: "Settled."})
	both := agent("both", nil, scripted.Turn{ToolCalls: calls("remove", 2)}, scripted.Turn{Text: "Both are settled."})
	guide := agent("guide", nil, scripted.Turn{ToolCalls: calls("place", 1)}, scripted.Turn{Text: "I see."})
	odd := agent("odd", nil, scripted.Turn{ToolCalls: []scripted.Call{{ID: "call\u200b1", Name: "remove", Arguments: json.RawMessage(`{"what":"drafts"}`)}}}, scripted.Turn{Text: "Settled."})
	janitor.Tools, both.Tools, guide.Tools = []agentloop.Tool{remove}, []agentloop.Tool{remove}, []agentloop.Tool{place}
	odd.Tools = []agentloop.Tool{remove}
	return []agentloop.Agent{
		agent("echo", nil, scripted.Turn{Reasoning: "They ask.", Text: "Hello\nyou."}), janitor, both, guide, odd,
		agent("broken", nil, scripted.Turn{Err: &model.Error{Code: model.CodeProvider, Message: "no such model"}}),
		agent("slow", &scripted.Options{Delay: time.Hour}, scripted.Turn{Text: "one two three"}),
	}
}

func TestRun(t *testing.T) {
	_, helixd := clitest.Daemon[Talk](t, talkers()...)
	out, notes, err := helixd("", "run", "echo", "hi", "--session", "s", "--tag", "t", "--user", "ada")
	require.NoError(t, err)
	require.Equal(t, "They ask.\nHello\nyou.\n", out)
	require.Equal(t, "session s\n", notes)

	out, _, err = helixd("from the input\n", "run", "echo", "--json")
	require.NoError(t, err)
	require.Regexp(t, `(?s)^\{"type":"chunk","chunk":\{.*\n\{"type":"end","output":"Hello\\nyou.","state":\{\}\}\n$`, out)
	out, _, err = helixd("", "run", "echo", "hi", "--session", "quiet", "--no-follow")
	require.NoError(t, err)
	require.Equal(t, "quiet\n", out)

	_, _, err = helixd("", "run", "echo", "hi", "--session", "s")
	require.EqualError(t, err, "s is finished: helixd say s 'MESSAGE' begins its next turn")
	_, _, err = helixd("", "run", "nobody", "hi")
	require.ErrorContains(t, err, "there is no such agent type; known are both, broken, echo, guide, janitor, odd, slow (NOT_FOUND)")

	out, _, err = helixd("", "run", "broken", "hi")
	require.EqualError(t, err, "the run has failed")
	require.Equal(t, 1, flags.ExitCode(err))
	require.Contains(t, out, "no such model")

	out, notes, err = helixd("", "run", "janitor", "tidy", "--session", "it's")
	require.ErrorIs(t, err, flags.ErrWaits)
	require.Equal(t, 3, flags.ExitCode(err))
	require.Contains(t, out, "approval? remove call_0_0")
	require.Contains(t, notes, `remove {"what":"drafts"} waits for approval: helixd approve 'it'\''s', or helixd deny 'it'\''s'.`+"\n")
}

// A run that is interrupted while it is shown has its own exit code, and can be resumed
// and aborted.
func TestInterruptAndAbort(t *testing.T) {
	_, helixd := clitest.Daemon[Talk](t, talkers()...)
	shown := make(chan error, 1)
	go func() {
		_, _, err := helixd("", "run", "slow", "hi", "--session", "s")
		shown <- err
	}()
	require.Eventually(t, func() bool { // once it has begun
		out, _, err := helixd("", "interrupt", "s", "--reason", "enough")
		return err == nil && out == "s is interrupted\n"
	}, time.Minute, time.Millisecond)
	err := <-shown
	require.ErrorIs(t, err, flags.ErrStopped)
	require.Equal(t, 4, flags.ExitCode(err))

	out, _, err := helixd("", "resume", "s")
	require.NoError(t, err)
	require.Regexp(t, `^run-\S+ continues s\n$`, out)
	out, _, err = helixd("", "abort", "s")
	require.NoError(t, err)
	require.Equal(t, "s is failed\n", out)
	out, _, err = helixd("", "abort", "s", "--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"ok":true}`, out)
	_, _, err = helixd("", "resume", "s", "--turn", "1")
	require.ErrorContains(t, err, "--turn goes with --retry")
	_, _, err = helixd("", "abort", "nobody")
	require.ErrorContains(t, err, "(NOT_FOUND)")
}

func TestDecide(t *testing.T) {
	_, helixd := clitest.Daemon[Talk](t, talkers()...)
	for _, session := range []string{"yes", "no", "later"} {
		_, _, err := helixd("", "run", "janitor", "tidy", "--session", session)
		require.ErrorIs(t, err, flags.ErrWaits)
	}
	out, _, err := helixd("", "approve", "yes", "--follow")
	require.NoError(t, err)
	require.Equal(t, "call_0_0 is approved, and the run continues\napproved remove call_0_0\n"+
		`runs remove call_0_0 {"what":"drafts"}`+"\n"+`result remove call_0_0 "drafts are gone"`+"\nSettled.\n", out)
	_, _, err = helixd("", "approve", "yes")
	require.EqualError(t, err, "no call of yes waits for approval")
	_, _, err = helixd("", "deny", "yes", "--call", "call_0_0")
	require.EqualError(t, err, "call_0_0 has an answer already, which counts")

	out, _, err = helixd("", "deny", "no", "--reason", "Too much.", "--follow")
	require.NoError(t, err)
	require.Contains(t, out, "denied remove call_0_0 Too much.\n")
	require.NotContains(t, out, "drafts are gone")
	require.Equal(t, 1, strings.Count(out, "failed remove"), "%s", out)

	out, _, err = helixd("", "approve", "later", "--no-resume", "--follow")
	require.NoError(t, err)
	require.Equal(t, "call_0_0 is approved; helixd resume later continues the run\n", out)
	out, _, err = helixd("", "resume", "later", "--follow")
	require.NoError(t, err)
	require.Contains(t, out, `"drafts are gone"`)

	_, _, err = helixd("", "run", "odd", "tidy", "--session", "odd")
	require.ErrorIs(t, err, flags.ErrWaits)
	out, _, err = helixd("", "approve", "odd", "--follow")
	require.NoError(t, err)
	require.Contains(t, out, "call\ufffd1 is approved, and the run continues\n")

	out, notes, err := helixd("", "run", "both", "tidy", "--session", "both")
	require.ErrorIs(t, err, flags.ErrWaits, out)
	require.Contains(t, notes, "helixd approve both --call call_0_1, or helixd deny both --call call_0_1.")
	_, _, err = helixd("", "approve", "both")
	require.EqualError(t, err, "several calls wait for approval, name one with --call: call_0_0, call_0_1")
	out, _, err = helixd("", "approve", "both", "--call", "call_0_0")
	require.NoError(t, err)
	require.Equal(t, "call_0_0 is approved; 1 more call waits: call_0_1\n", out)
	out, _, err = helixd("", "deny", "both", "--json")
	require.NoError(t, err)
	var done api.Submitted
	require.NoError(t, json.Unmarshal([]byte(out), &done))
	require.Equal(t, api.Submitted{Status: "accepted", SessionID: "both", ToolCallID: "call_0_1", PendingToolCallIDs: []string{}}, done)
}

func TestAnswer(t *testing.T) {
	_, helixd := clitest.Daemon[Talk](t, talkers()...)
	_, notes, err := helixd("", "run", "guide", "where?", "--session", "s")
	require.ErrorIs(t, err, flags.ErrWaits)
	require.Contains(t, notes, `place {"what":"drafts"} waits for its result: helixd answer s 'JSON'.`)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no approval":           {[]string{"approve", "s"}, "no call of s waits for approval"},
		"neither":               {[]string{"answer", "s"}, "give either the result or --error"},
		"both":                  {[]string{"answer", "s", "1", "--error", "x"}, "give either the result or --error"},
		"no JSON":               {[]string{"answer", "s", "north"}, `the result is not JSON; a text is '"north"'`},
		"not what is asked for": {[]string{"answer", "s", `{"lat":"north"}`}, "(INVALID_REQUEST)"},
	} {
		_, _, err := helixd("", c.args...)
		require.ErrorContains(t, err, c.want, name)
	}
	out, _, err := helixd("", "answer", "s", `{"lat":55.7}`, "--follow")
	require.NoError(t, err)
	require.Contains(t, out, "call_0_0 is answered, and the run continues\n")
	require.Contains(t, out, "I see.\n")
	out, _, err = helixd("", "say", "s", "And now?", "--follow", "--idempotency-key", "k")
	require.ErrorIs(t, err, flags.ErrWaits)
	require.Regexp(t, `^run-\S+ of s has begun\n`, out)
	require.NotContains(t, out, "I see.", "the turn before")
	out, _, err = helixd("", "answer", "s", "--error", "no position", "--follow")
	require.NoError(t, err)
	require.Contains(t, out, "no position")
}

// A chat shows what is said, has calls answered, and continues a session that exists.
func TestChat(t *testing.T) {
	_, helixd := clitest.Daemon[Talk](t, talkers()...)
	out, asked, err := helixd("tidy\nperhaps\ny\n\nagain\nNo\n", "chat", "janitor", "--session", "s")
	require.NoError(t, err)
	const question = `Approve remove {"what":"drafts"}? [y/n] `
	require.Equal(t, "session s\n> "+question+question+"> > "+question+"> \nContinue with helixd chat --session s\n", asked)
	require.Contains(t, out, "\"drafts are gone\"\nSettled.\nMay I?\n")
	require.Contains(t, out, "denied remove call_0_0-2\n")

	again, _, err := helixd("", "chat", "--session", "s")
	require.NoError(t, err)
	require.Equal(t, "> tidy\n"+strings.Replace(out, "Settled.\nMay", "Settled.\n> again\nMay", 1), again, "it is shown from its beginning")

	out, asked, err = helixd("where?\nnorth\n{\"lat\":1}\nand now?\n\n", "chat", "guide", "--session", "g")
	require.NoError(t, err)
	require.Contains(t, asked, `Result of place {"what":"drafts"}, as JSON (nothing: leave it open): the submission is not valid (INVALID_REQUEST)`)
	require.Contains(t, out, "I see.\n")
	_, notes, err := helixd("", "chat", "--session", "g")
	require.NoError(t, err)
	require.Contains(t, notes, "Result of place", "the call that was left open")

	_, _, err = helixd("", "run", "janitor", "tidy", "--session", "paused")
	require.ErrorIs(t, err, flags.ErrWaits)
	_, _, err = helixd("", "approve", "paused", "--no-resume")
	require.NoError(t, err)
	out, notes, err = helixd("", "chat", "--session", "paused")
	require.NoError(t, err)
	require.Equal(t, "session paused\n> \nContinue with helixd chat --session paused\n", notes, "no call waits: it is the user's turn")
	require.NotContains(t, out, "drafts are gone", "nobody has continued the run")
	out, _, err = helixd("", "resume", "paused", "--follow")
	require.NoError(t, err)
	require.Contains(t, out, "drafts are gone")

	_, _, err = helixd("", "chat")
	require.ErrorContains(t, err, "give the agent, or a session with --session")
	_, _, err = helixd("", "chat", "--session", "nobody")
	require.ErrorContains(t, err, "(NOT_FOUND)")
	out, _, err = helixd("hi\n", "chat", "broken", "--session", "b")
	require.NoError(t, err)
	require.Contains(t, out, `failed: "no such model"`)
}

// A message may be as long as the daemon takes one. A line that is longer is no end of the input.
func TestChatTakesLongLines(t *testing.T) {
	log, helixd := clitest.Daemon[Talk](t, talkers()...)
	long := strings.Repeat("x", 1<<20)
	out, _, err := helixd(long+"\nagain\n", "chat", "echo", "--session", "s")
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(out, "Hello"), "%s", out)
	messages := clitest.Folded(t, log, "s").Messages
	require.Equal(t, long, messages[0].Content)

	_, notes, err := helixd("one\n"+strings.Repeat("x", api.MaxBody)+"\ntwo\n", "chat", "echo", "--session", "t")
	require.EqualError(t, err, "the standard input: bufio.Scanner: token too long")
	require.NotContains(t, notes, "Continue with")
}

// A connection that breaks off ends a chat with its error: its EOF is not the end of the input.
func TestChatThatLosesTheConnection(t *testing.T) {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("POST /start", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"sessionId":"s","streamId":"s","runId":"r"}`)
	})
	routes.HandleFunc("GET /sse", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"type\":\"end\",\"output\":\"Hello.\",\"state\":{}}\n\n")
	})
	routes.HandleFunc("POST /sessions/{id}/messages", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	})
	srv := httptest.NewServer(routes)
	defer srv.Close()
	_, notes, err := clitest.Run[Talk](t, "one\ntwo\n", "chat", "echo", "--server", srv.URL)
	require.ErrorContains(t, err, "EOF")
	require.NotContains(t, notes, "Continue with")
}

// A message to a session that somebody else has set to work waits until that run, which is
// shown, has ended.
func TestChatWithASessionThatRuns(t *testing.T) {
	routes := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
	var sent []string
	routes.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	routes.HandleFunc("POST /start", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, `{"sessionId":"s","streamId":"s","runId":"r"}`)
	})
	routes.HandleFunc("GET /sessions/{id}/state", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, `{"sequence":4,"state":{"messages":[{"role":"user","content":"one","sequence":1},{"role":"user","content":"theirs","sequence":3}]}}`)
	})
	routes.HandleFunc("POST /sessions/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		sent = append(sent, string(raw))
		if len(sent) == 1 {
			answer(w, 409, `{"error":"the session is running","code":"ALREADY_RUNNING"}`)
			return
		}
		answer(w, 200, `{"sessionId":"s","streamId":"s","runId":"r3"}`)
	})
	streams := 0
	routes.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		texts := []string{"First.", "To them.", "To us."}
		fmt.Fprintf(w, "id: %[1]d\ndata: {\"type\":\"chunk\",\"sequence\":%[1]d,\"chunk\":{\"type\":\"text_delta\",\"agentId\":%[3]q,\"agentType\":\"echo\",\"delta\":%[2]q,\"timestamp\":1,\"step\":1}}\n\n", 2*(streams+1), texts[streams], r.URL.Query().Get("sessionId"))
		fmt.Fprint(w, "data: {\"type\":\"end\",\"state\":{}}\n\n")
		streams++
	})
	srv := httptest.NewServer(routes)
	defer srv.Close()
	out, notes, err := clitest.Run[Talk](t, "one\ntwo\n", "chat", "echo", "--server", srv.URL)
	require.NoError(t, err)
	require.Contains(t, notes, "Continue with")
	require.Equal(t, "First.\n> theirs\nTo them.\nTo us.\n", out)
	require.Len(t, sent, 2)
	require.Equal(t, sent[0], sent[1])
}
