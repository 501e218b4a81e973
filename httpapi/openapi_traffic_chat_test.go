package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/projector/readmodel"
)

// trafficChat: chats, from the first message to the last approval.
func trafficChat(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), append(waitingAgents(), append(agents(gatedModel{}), agentloop.Agent{Name: "citing", Model: citing{}})...), withChat(func(o *chat.Options) {
		o.StartMetadata, o.FinishMetadata = chat.StaticMetadata(1), chat.StaticMetadata(map[string]int{"a": 1})
	}))
	a.chat(`{"id":"chat","sessionId":"s","agentType":"asker","userId":"u","tags":["t"],"metadata":{"from":"web"},"messages":[` + user("u", "go") + `]}`)
	a.chat(`{"id":"t","messages":[`+user("u", "go")+`]}`, "X-Helix-Agent", "echo", "X-Existing-Message-Id", "mine",
		"X-Resume-From-Sequence", "0", "Last-Event-ID", "0")
	a.srv.SetPrices(map[string]readmodel.Price{"scripted": {Input: 1, Output: 1}})
	for _, format := range []string{"", "?format=text-stream-part"} {
		session := fmt.Sprintf("yes%d", len(format))
		a.chat(says(session, "asker", "go"))
		id := a.pending(session)[0].ApprovalID
		a.post("/chat"+format, goesOn(session, "msg-1", approval("rm", id, false))).done(t)
		a.post("/chat"+format, `{"id":"`+session+`","trigger":"regenerate-message","messageId":"msg-1","messages":[]}`, idemKey, "k").done(t)
		a.get("/chat/"+session+"/stream"+format, "X-Resume-From-Sequence", "1", "X-Existing-Message-Id", "m").done(t)
		a.get("/chat/"+session+"/stream"+format, "Last-Event-ID", "1").done(t)
	}
	a.post("/chat", says("bad", "broken", "go")).done(t)
	a.post("/chat?format=text-stream-part", says("bad", "broken", "again")).done(t)
	a.post("/chat", `{"id":"cited","agentType":"citing","messages":[{"id":"u","role":"user","metadata":{"a":1},"parts":[
		{"type":"text","text":"where?"},{"type":"file","url":"data:text/plain;base64,aGk=","mediaType":"text/plain","filename":"f.txt"}]}]}`).done(t)
	a.get("/chat/cited/messages").done(t)
	var ticket api.Ticket
	a.post("/chat/cited/tickets", "{}").done(t).decode(t, &ticket)
	require.Equal(t, 204, a.get("/chat/cited/stream?ticket="+ticket.Ticket).status)
	a.post("/chat/nobody/tickets", "{}").failed(t, 404, api.CodeNotFound)
	a.get("/sessions/cited/state").done(t)
	for _, session := range []string{"s", "t", "bad"} {
		a.get("/sessions/" + session + "/state").done(t)
		a.get("/chat/" + session + "/snapshot?includePartialContent=1").done(t)
		a.get("/chat/" + session + "/messages?offset=0&limit=9&includeReasoning=false&includeToolResults=0").done(t)
	}
}

// citing is a model that thinks, and says where it has it from.
type citing struct{}

func (citing) Generate(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	for _, e := range []model.Event{
		model.ReasoningDelta{Text: "hm"}, model.PartEnd{Data: json.RawMessage(`{"provider":"x"}`)}, model.TextDelta{Text: "See there."},
		model.Source{URL: "https://a.example", Title: "A"},
		model.Source{MediaType: "application/pdf", Title: "B", Filename: "b.pdf"},
		model.File{URL: "data:image/png;base64,AA==", MediaType: "image/png"},
	} {
		if err := emit(e); err != nil {
			return model.Answer{}, err
		}
	}
	return model.Answer{Model: "citing", StopReason: fact.StopEndTurn}, nil
}

// trafficParts: every part of the two dialects.
func trafficParts(t *testing.T, c *apiChecker) {
	g := gatedModel{make(chan struct{})}
	a := c.server(t, memory.New(), agents(g), withChat(func(o *chat.Options) { o.LooseParts = true }))
	a.open("POST", "/chat", says("s", "gated", "go")).until("waiting")
	b := base("s")
	b.AgentType = "gated"
	no := "no"
	a.append("s",
		chunk(&eventlog.Thinking{Content: "hm", Base: b}), chunk(&eventlog.Thinking{Content: "hm", IsComplete: true, Base: b}),
		chunk(&eventlog.ToolArgStreamStart{ToolCallID: "a", ToolName: "x", Base: b}),
		chunk(&eventlog.ToolArgStreamDelta{ToolCallID: "a", Delta: "{}", Base: b}), chunk(&eventlog.ToolArgStreamEnd{ToolCallID: "a", Base: b}),
		chunk(&eventlog.ToolStart{ToolCallID: "a", ToolName: "x", Arguments: json.RawMessage(`{}`), Base: b}),
		chunk(&eventlog.ToolEnd{ToolCallID: "a", ToolName: "x", Result: json.RawMessage(`1`), Base: b}),
		chunk(&eventlog.ToolApprovalRequest{ToolCallID: "b", ToolName: "x", ApprovalID: "r::b", Input: json.RawMessage(`{}`), Base: b}),
		chunk(&eventlog.ToolApprovalResponse{ToolCallID: "b", ToolName: "x", ApprovalID: "r::b", Base: b}),
		chunk(&eventlog.ToolStart{ToolCallID: "c", ToolName: "x", Arguments: json.RawMessage(`{}`), Base: b}),
		chunk(&eventlog.ToolEnd{ToolCallID: "c", ToolName: "x", Result: json.RawMessage(`null`), Error: &no, Base: b}),
		chunk(&eventlog.ToolInputError{ToolCallID: "d", ToolName: "x", Error: no, Base: b}),
		chunk(&eventlog.SourceURL{SourceID: "1", URL: "https://a.example", Title: &no, Base: b}),
		chunk(&eventlog.SourceDocument{SourceID: "2", MediaType: "text/plain", Title: no, Filename: &no, Base: b}),
		chunk(&eventlog.File{URL: "data:,x", MediaType: "text/plain", Filename: &no, Base: b}),
		chunk(&eventlog.CustomEvent{EventName: "progress", Data: json.RawMessage(`{"id":"p","transient":true,"n":1}`), Base: b}),
		chunk(&eventlog.CustomEvent{EventName: "progress", Data: json.RawMessage(`{"id":"q","n":1}`), Base: b}),
		chunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "add", Path: "/n", Value: json.RawMessage(`1`)}}, Base: b}),
		text("s-sub-1", "from below"), text("s", "the last one"))
	a.get("/chat/s/snapshot?includePartialContent=true").done(t)
	whole := a.open("GET", "/chat/s/stream", "")
	other := a.open("GET", "/chat/s/stream?format=text-stream-part", "")
	whole.until("the last one")
	other.until("the last one")
	a.post("/chat/s/interrupt", `{"reason":"enough"}`).done(t)
	whole.until("[DONE]")
	other.until("[DONE]")
	for _, s := range []*stream{whole, other} {
		s.resp.Body.Close()
	}
	close(g.open)
	a.chat(says("t", "echo", "go"))
}

// trafficChatRefused: errors of chat routes only.
func trafficChatRefused(t *testing.T, c *apiChecker) {
	log, nc := newLogAndConn(t)
	g := gatedModel{make(chan struct{})}
	a := c.server(t, log, agents(g), withChat())
	a.open("POST", "/chat", says("s", "gated", "hi")).until("waiting")
	a.post("/chat", says("s", "gated", "more")).failed(t, 409, api.CodeAlreadyRunning)
	beginErasing(t, a, nc)
	a.post("/chat", says("erasing", "echo", "hi")).failed(t, 409, api.CodeErasurePending)
	close(g.open)
	a.wait("s")

	none := c.server(t, struct{ eventlog.Log }{memory.New()}, []agentloop.Agent{writer()}, func(o *httpapi.Options) { o.Subscribe, o.Unsubscribe, o.Gatherer, o.Reload = nil, nil, nil, nil })
	rows := map[string]httpapi.TestRoute{}
	for _, rt := range httpapi.RouteTable() {
		rows[rt.Method+" "+rt.Pattern] = rt
	}
	for op := range c.doc.operations() {
		if op.Responses["501"] != nil {
			name := op.method + " " + op.path
			good := routeCases[name]
			none.request(op.method, good.target(rows[name], "s"), good.bodyFor(t, "s", "f")).
				failed(t, 501, api.CodeNotImplemented)
		}
	}
}
