package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/projector"
)

// newChat serves some agents to chat clients, on a real log.
func newChat(t *testing.T, agents []agentloop.Agent, change ...func(*chat.Options)) *testAPI {
	t.Helper()
	return newAPIOn(t, newLog(t), agents, withChat(change...))
}

func withChat(change ...func(*chat.Options)) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		o.Chat = &chat.Options{}
		for _, f := range change {
			f(o.Chat)
		}
	}
}

// named counts the messages that clients have given an id.
var named atomic.Int64

// says is the body of a client that says something in a session, to an agent
// if that is not "".
func says(session, agent, text string) string {
	if agent == "" {
		return fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messages":[%s]}`, session, user(fmt.Sprint("u", named.Add(1)), text))
	}
	return fmt.Sprintf(`{"id":%q,"agentType":%q,"trigger":"submit-message","messages":[%s]}`, session, agent, user(fmt.Sprint("u", named.Add(1)), text))
}

func user(id, text string) string {
	raw, _ := json.Marshal(text)
	return fmt.Sprintf(`{"id":%q,"role":"user","parts":[{"type":"text","text":%s}]}`, id, raw)
}

// goesOn is the body of a client that sends its last assistant message back.
func goesOn(session, messageID, parts string) string {
	return fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messageId":%q,"messages":[%s,{"id":%q,"role":"assistant","parts":[%s]}]}`,
		session, messageID, user("u", "go"), messageID, parts)
}

// approval is the part of a call that a person has decided about.
func approval(call, id string, approved bool) string {
	return fmt.Sprintf(`{"type":"step-start"},{"type":"tool-remove","toolCallId":%q,"state":"approval-responded","input":{},"approval":{"id":%q,"approved":%t,"reason":"because"}}`,
		call, id, approved)
}

// otherwise is a model that answers "go" as another one does, and all else by
// repeating it.
type otherwise struct{ model.Model }

func (m otherwise) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	said := ""
	for _, message := range req.Messages {
		if message.Role == model.RoleUser {
			said = message.Content
		}
	}
	if said != "go" {
		return scripted.New([]scripted.Turn{{Text: "you said " + said}}, nil).Generate(ctx, req, emit)
	}
	return m.Model.Generate(ctx, req, emit)
}

// talkingAgents are waitingAgents that can be talked to about other things.
func talkingAgents() []agentloop.Agent {
	all := waitingAgents()
	for i := range all {
		all[i].Model = otherwise{all[i].Model}
	}
	return all
}

// part is a part of a UI message stream.
type part struct {
	id   string // the SSE id
	data map[string]any
}

func (p part) kind() string {
	kind, _ := p.data["type"].(string)
	return kind
}

// uiStream is a UI message stream that was read to its end.
type uiStream []part

func parts(t *testing.T, body string) (all uiStream) {
	t.Helper()
	done := false
	for frame := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var p part
		for line := range strings.SplitSeq(frame, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch {
			case field == "id":
				p.id = value
			case field == "data" && value == "[DONE]":
				done = true
			case field == "data":
				require.NoError(t, json.Unmarshal([]byte(value), &p.data), value)
			case field != "" && field != "retry":
				t.Fatalf("line %q", line)
			}
		}
		if p.data != nil {
			require.False(t, done, "nothing follows [DONE]: %s", body)
			all = append(all, p)
		}
	}
	require.True(t, done, "the stream ends with [DONE]: %s", body)
	return all
}

// chat posts to /chat and reads the stream to its end.
func (a *testAPI) chat(body string, headers ...string) uiStream {
	a.t.Helper()
	got := a.post("/chat", body, headers...)
	require.Equal(a.t, 200, got.status, got.body)
	require.Equal(a.t, "text/event-stream", got.header.Get("Content-Type"))
	require.Equal(a.t, "v1", got.header.Get("X-Vercel-Ai-Ui-Message-Stream"))
	return parts(a.t, got.body)
}

// kinds returns the types of the parts that are not transient.
func (s uiStream) kinds() (kinds []string) {
	for _, p := range s {
		if p.data["transient"] != true {
			kinds = append(kinds, p.kind())
		}
	}
	return kinds
}

func (s uiStream) text() string {
	var text strings.Builder
	for _, p := range s {
		if p.kind() == "text-delta" {
			text.WriteString(p.data["delta"].(string))
		}
	}
	return text.String()
}

// one returns the only part of a type.
func (s uiStream) one(t *testing.T, kind string) map[string]any {
	t.Helper()
	var found []map[string]any
	for _, p := range s {
		if p.kind() == kind {
			found = append(found, p.data)
		}
	}
	require.Len(t, found, 1, "%s in %v", kind, s)
	return found[0]
}

func (s uiStream) has(kind string) bool {
	return slices.ContainsFunc(s, func(p part) bool { return p.kind() == kind })
}

// open posts to /chat and returns the stream while it continues.
func (a *testAPI) open(method, target, body string, headers ...string) *stream {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.ctx())
	a.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, a.http.URL+target, strings.NewReader(body))
	require.NoError(a.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.http.Client().Do(req)
	require.NoError(a.t, err)
	a.t.Cleanup(func() { resp.Body.Close() })
	require.Equal(a.t, 200, resp.StatusCode)
	return &stream{t: a.t, resp: resp, r: bufio.NewReader(resp.Body), cancel: cancel}
}

// until reads parts until one holds the text.
func (s *stream) until(text string) (read []sseEvent) {
	s.t.Helper()
	for {
		e := s.next()
		if read = append(read, e); strings.Contains(e.data, text) {
			return read
		}
	}
}

func (a *testAPI) tree(session string) *projector.Tree { return a.treeAt(session, 0) }

// treeAt returns a session's state at a sequence; 0: now.
func (a *testAPI) treeAt(session string, sequence uint64) *projector.Tree {
	a.t.Helper()
	var at struct{ State *projector.Tree }
	path := "/sessions/" + escape(session) + "/state"
	if sequence > 0 {
		path += fmt.Sprint("?at=", sequence)
	}
	got := a.get(path)
	require.Equal(a.t, 200, got.status, got.body)
	got.decode(a.t, &at)
	return at.State
}

// said returns what users and assistants have said, in order.
func (a *testAPI) said(session string) (all []string) {
	a.t.Helper()
	for _, m := range a.tree(session).Messages {
		if m.Role != projector.RoleTool {
			all = append(all, m.Content)
		}
	}
	return all
}

// modes returns the modes of the session's runs that no rollback has truncated.
func (a *testAPI) modes(session string) (all []string) {
	a.t.Helper()
	for _, run := range a.tree(session).Runs {
		if !run.Truncated {
			all = append(all, string(run.Mode))
		}
	}
	return all
}
