package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// says is a model that answers by a function of the conversation since the last user message.
type says struct {
	name string
	f    func(request string, results []string) turn
}

// turn is an answer: a text, or calls.
type turn struct {
	text  string
	calls []call
}

type call struct {
	name string
	args any
}

func (s says) Name() string { return s.name }

func (s says) Generate(_ context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	request, results := "", []string(nil)
	for _, m := range req.Messages {
		switch {
		case m.Role == model.RoleUser && !strings.HasPrefix(m.Content, "What you remember"):
			request, results = m.Content, nil
		case m.Role == model.RoleTool:
			results = append(results, m.Content)
		}
	}
	t := s.f(request, results)
	answer := model.Answer{Model: s.name, StopReason: fact.StopEndTurn, Usage: fact.TokenUsage{
		Prompt: int64(10 * len(req.Messages)), Completion: int64(len(t.text)/4 + 5*len(t.calls)),
	}}
	answer.Usage.Total = answer.Usage.Prompt + answer.Usage.Completion
	if t.text != "" {
		if err := emit(model.TextDelta{Text: t.text}); err != nil {
			return answer, err
		}
	}
	for i, c := range t.calls {
		answer.StopReason = fact.StopToolUse
		args, err := json.Marshal(c.args)
		if err != nil {
			return answer, err
		}
		for _, e := range []model.Event{
			model.ToolCallStart{Call: i, ID: fmt.Sprintf("call_%d_%d", len(results), i), Name: c.name},
			model.ToolCallDelta{Call: i, Text: string(args)}, model.ToolCallEnd{Call: i},
		} {
			if err := emit(e); err != nil {
				return answer, err
			}
		}
	}
	return answer, nil
}

type object = map[string]any

// world is what the recorded agents reach: it counts what is really done.
type world struct {
	mu   sync.Mutex
	done map[string]int
}

func (w *world) do(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done == nil {
		w.done = map[string]int{}
	}
	w.done[name]++
	return w.done[name]
}

// reminds recalls a memory about the user.
type reminds struct{ w *world }

func (r reminds) Recall(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	r.w.do("recall")
	return []fact.RecalledMemory{{MemoryID: "m-" + req.UserID, Content: "Likes tea no. " + req.UserID, Score: 1}}, nil
}

const (
	refundArgs = `{"type":"object","properties":{"amount":{"type":"integer"},"order":{"type":"string"}},"required":["amount","order"]}`
	noteArgs   = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`
	verdict    = `{"type":"object","properties":{"grade":{"type":"string"},"of":{"type":"integer"}},"required":["grade","of"]}`
)

// number is the number in a request, such as "refund 17".
func number(request string) (n int) {
	for _, word := range strings.Fields(request) {
		if _, err := fmt.Sscanf(word, "%d", &n); err == nil {
			return n
		}
	}
	return 0
}

// agents are several that work together: a desk with tools, memories and approvals, one that writes
// files, one that asks two others at the same time, and one that loops for a while.
func agents(w *world) []agentloop.Agent {
	tool := func(name, schema string, f func(args object) any) agentloop.Tool {
		return agentloop.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(schema),
			Execute: func(_ context.Context, c *agentloop.Call, raw json.RawMessage) (any, error) {
				n := w.do(name)
				var args object
				if err := json.Unmarshal(raw, &args); err != nil {
					return nil, err
				}
				if args["fail"] == true {
					return nil, fmt.Errorf("%s fails, the %d. time", name, n)
				}
				if name == "note" {
					path := "/note"
					if err := c.Patch([]eventlog.PatchOp{{Op: "add", Path: path, Value: raw}}); err != nil {
						return nil, err
					}
				}
				return f(args), nil
			}}
	}
	refund := tool("refund", refundArgs, func(args object) any { return object{"refunded": args["amount"]} })
	refund.RequireApproval = over(100)
	ask := agentloop.Tool{Name: "ask_user", Client: true, InputSchema: json.RawMessage(noteArgs)}
	counter := 0
	desk := agentloop.Agent{
		Name: "desk", SystemPrompt: "You serve customers.", Recall: reminds{w}, InitialState: json.RawMessage(`{}`),
		Tools: []agentloop.Tool{
			tool("find", `{"type":"object"}`, func(args object) any {
				w.mu.Lock()
				defer w.mu.Unlock()
				counter++ // another result each time
				return object{"order": fmt.Sprint("o-", args["n"]), "lookup": counter}
			}),
			refund, ask, tool("note", noteArgs, func(object) any { return "noted" }),
		},
		Model: says{"desk-model", func(request string, results []string) turn {
			n := number(request)
			switch len(results) {
			case 0:
				return turn{calls: []call{{"find", object{"n": n}}, {"find", object{"n": n}}}}
			case 2:
				if n%10 == 4 {
					return turn{calls: []call{{"ask_user", object{"text": "Which one?"}}}}
				}
				return turn{calls: []call{{"refund", object{"amount": n, "order": fmt.Sprint("o-", n)}}}}
			case 3:
				return turn{calls: []call{{"note", object{"text": "n" + results[2]}}}}
			}
			return turn{text: fmt.Sprintf("Request %d is done: %s", n, results[2])}
		}},
	}
	writer := agentloop.Agent{
		Name: "writer", SystemPrompt: "You write files.", Workspace: &agentloop.Workspace{Provider: inmemory.New(nil).ID()},
		Model: says{"writer-model", func(request string, results []string) turn {
			n := number(request)
			switch len(results) {
			case 0:
				return turn{calls: []call{{"workspace_write_file", object{"path": "a.txt", "content": fmt.Sprint("draft ", n)}}}}
			case 1:
				return turn{calls: []call{{"workspace_read_file", object{"path": "a.txt"}}}}
			}
			return turn{text: "I wrote " + results[1]}
		}},
	}
	judge := agentloop.Agent{
		Name: "grader", Description: "Grades.", OutputSchema: json.RawMessage(verdict),
		Model: says{"grader-model", func(request string, _ []string) turn {
			n := number(request)
			return turn{calls: []call{{agentloop.FinishTool, object{"grade": string(rune('a' + n%5)), "of": n}}}}
		}},
	}
	planner := agentloop.Agent{
		Name: "planner", SystemPrompt: "You plan.", SubAgents: []agentloop.SubAgent{{Agent: "grader"}},
		Model: says{"planner-model", func(request string, results []string) turn {
			n := number(request)
			if len(results) == 0 {
				return turn{calls: []call{
					{"subagent__grader", object{"message": fmt.Sprint("Grade ", n)}}, {"subagent__grader", object{"message": fmt.Sprint("Grade ", n+1)}},
				}}
			}
			return turn{text: "Graded: " + strings.Join(results, " ")}
		}},
	}
	looper := agentloop.Agent{
		Name: "looper", MaxSteps: 8,
		Tools: []agentloop.Tool{tool("step", `{"type":"object"}`, func(args object) any { return args["i"] })},
		Model: says{"looper-model", func(request string, results []string) turn {
			if n := steps(number(request)); len(results) < n {
				return turn{calls: []call{{"step", object{"i": len(results), "fail": len(results) == 4}}}}
			}
			return turn{text: fmt.Sprint("After ", len(results))}
		}},
	}
	return []agentloop.Agent{desk, writer, judge, planner, looper}
}

// steps is how many steps the looper makes for a request: few, and for some requests many.
func steps(n int) int {
	if n == 303 || n == 308 || n == 313 {
		return 7
	}
	return n / 5 % 5
}

func over(limit int) agentloop.Gate {
	return func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (bool, error) {
		var in struct{ Amount int }
		err := json.Unmarshal(args, &in)
		return in.Amount > limit, err
	}
}

// recordedLoop is a loop with the agents, and its log.
func recordedLoop(t testing.TB) (*memory.Log, *engine.Loop) {
	t.Helper()
	log := memory.New()
	loop, err := engine.New(log, agents(&world{}), &engine.Options{Workspaces: []workspace.Provider{inmemory.New(nil)}})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return log, loop
}

// recordAll records a number of sessions of the agents, as their users had them.
func recordAll(t testing.TB, sessions int) *cohort.Cohort {
	t.Helper()
	return recordThose(t, sessions, func(int) bool { return true })
}

// recordThose is recordAll without the sessions that are not wanted.
func recordThose(t testing.TB, sessions int, wanted func(n int) bool) *cohort.Cohort {
	t.Helper()
	log, loop := recordedLoop(t)
	types := []string{"desk", "writer", "planner", "looper", "desk"}
	var work sync.WaitGroup
	limit := make(chan struct{}, 4)
	for n := range sessions {
		if !wanted(n) {
			continue
		}
		limit <- struct{}{}
		work.Go(func() {
			defer func() { <-limit }()
			session(t, loop, fmt.Sprintf("s-%04d", n), types[n%len(types)], n)
		})
	}
	work.Wait()
	c, err := cohort.Create(t.Context(), func(yield func(cohort.Source, error) bool) {
		for id, err := range log.Sessions(t.Context()) {
			if !yield(sourceOf(log, id), err) {
				return
			}
		}
	}, cohort.Options{})
	require.NoError(t, err)
	return c
}

func sourceOf(log *memory.Log, id string) cohort.Source {
	return cohort.Source{ID: id, Records: func(ctx context.Context) iter.Seq2[eventlog.Record, error] { return log.Read(ctx, id, 0, 0) }}
}

func sessionOf(t testing.TB, log *memory.Log, id string) cohort.Session {
	t.Helper()
	c, err := cohort.Create(t.Context(), func(yield func(cohort.Source, error) bool) { yield(sourceOf(log, id), nil) }, cohort.Options{})
	require.NoError(t, err)
	return c.Sessions[0]
}

// session records one session: two messages, approvals and answers.
func session(t testing.TB, loop *engine.Loop, id, agent string, n int) {
	for _, text := range []string{fmt.Sprintf("Please do %d now", n), fmt.Sprintf("And then %d too", n+1)} {
		run, err := loop.Execute(t.Context(), engine.StartRequest{
			SessionID: id, AgentType: agent, UserID: fmt.Sprint("user-", n), Messages: []agentloop.Input{{Content: text}},
		})
		require.NoError(t, err)
		for {
			r, err := run.Result(t.Context())
			require.NoError(t, err)
			if r.Suspended == nil {
				break
			}
			for _, c := range r.Suspended.ToolCallIDs {
				sub := engine.Submission{SessionID: id, ToolCallID: c, Kind: fact.SubmitApproval, Approved: n%4 != 0, Reason: "as I see it"}
				if _, err := loop.Submit(t.Context(), sub); err != nil {
					sub = engine.Submission{SessionID: id, ToolCallID: c, Kind: fact.SubmitClientResult, Result: json.RawMessage(fmt.Sprintf(`"the %d. one"`, n))}
					_, err = loop.Submit(t.Context(), sub)
					require.NoError(t, err)
				}
			}
			run, err = run.Resume(t.Context(), engine.ResumeRequest{})
			require.NoError(t, err)
		}
	}
}
