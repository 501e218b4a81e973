package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

var (
	root  = workspace.Session{Root: "s", ID: "s"}
	shell = []fact.WorkspaceCapability{fact.WorkspaceFS, fact.WorkspaceShell}
)

// coder is an agent with a workspace that makes calls, one step each, and says
// that it is done.
func coder(words ...string) agentloop.Agent {
	var turns []scripted.Turn
	for ; len(words) > 0; words = words[3:] {
		turns = append(turns, scripted.Turn{ToolCalls: calls(words[:3]...)})
	}
	return coding(append(turns, scripted.Turn{Text: "Done."})...)
}

func coding(turns ...scripted.Turn) agentloop.Agent {
	return agentloop.Agent{
		Name: "coder", Model: script(turns...),
		Workspace: &agentloop.Workspace{Provider: "shelf", Capabilities: shell},
	}
}

func newSpaceRig(t *testing.T, log eventlog.Log, s workspace.Provider, o engine.Options, agents ...agentloop.Agent) *rig {
	t.Helper()
	o.RetryDelay, o.Workspaces = time.Millisecond, []workspace.Provider{s}
	loop, err := engine.New(log, agents, &o)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return &rig{t: t, log: log, loop: loop}
}

// result waits until the session's run is finished.
func (g *rig) result(session string) {
	g.t.Helper()
	h, err := g.loop.Handle(g.t.Context(), session)
	require.NoError(g.t, err)
	_, err = h.Result(g.t.Context())
	require.NoError(g.t, err)
}

// toolResults are what the calls gave, by their ids: the error if they failed.
func toolResults(s *projector.Tree) map[string]string {
	all := map[string]string{}
	for _, m := range s.Messages {
		if m.Role == projector.RoleTool {
			if all[m.ToolCallID] = m.Error; m.Error == "" {
				all[m.ToolCallID] = string(m.Result)
			}
		}
	}
	return all
}

// An agent whose workspace nobody can make is refused when the loop is made,
// and when it gets new agents.
func TestAWorkspaceThatNobodyMakesIsRefused(t *testing.T) {
	s := newShelf()
	s.offer = []fact.WorkspaceCapability{fact.WorkspaceFS}
	agent := func(w agentloop.Workspace) agentloop.Agent {
		return agentloop.Agent{Name: "coder", Model: script(scripted.Turn{Text: "Done."}), Workspace: &w}
	}
	loop, err := engine.New(memory.New(), nil, &engine.Options{Workspaces: []workspace.Provider{s}})
	require.NoError(t, err)
	defer loop.Stop()
	for _, tt := range []struct {
		name string
		w    agentloop.Workspace
		want string
	}{
		{"no such kind", agentloop.Workspace{Provider: "moon"}, `WORKSPACE_WIRING: agent coder: there is no provider "moon" of workspaces; there are: shelf`},
		{"not offered", agentloop.Workspace{Provider: "shelf", Capabilities: shell}, "agent coder: the provider shelf of workspaces does not offer shell"},
		{"unknown", agentloop.Workspace{Provider: "shelf", Capabilities: []fact.WorkspaceCapability{"gpu"}}, "workspace.capabilities[0]: must be fs, shell, code or snapshot"},
		{"bad name", agentloop.Workspace{Provider: "shelf", Name: "a b"}, "workspace.name: the name must match"},
		{"no provider", agentloop.Workspace{}, "workspace.provider: must not be empty"},
		{"approval of nothing", agentloop.Workspace{Provider: "shelf", Approve: []string{"run"}}, "workspace.approve[0]: is no operation of its capabilities"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := engine.New(memory.New(), []agentloop.Agent{agent(tt.w)}, &engine.Options{Workspaces: []workspace.Provider{s}})
			require.ErrorContains(t, err, tt.want)
			_, again := loop.SetAgents([]agentloop.Agent{agent(tt.w)})
			require.EqualError(t, again, err.Error())
		})
	}
	_, err = loop.SetAgents([]agentloop.Agent{agent(agentloop.Workspace{Provider: "moon"})})
	var wiring *agentloop.WorkspaceWiringError
	require.ErrorAs(t, err, &wiring)
	_, err = loop.SetAgents([]agentloop.Agent{agent(agentloop.Workspace{Provider: "shelf", Capabilities: shell})})
	var failed *agentloop.WorkspaceFailedError
	require.ErrorAs(t, err, &failed)
	_, err = engine.New(memory.New(), nil, &engine.Options{Workspaces: []workspace.Provider{s, newShelf()}})
	require.ErrorContains(t, err, `two providers "shelf"`)
}

// Calls of a step use the workspace at the same time; it is opened once, and
// edits of a file don't undo each other.
func TestCallsShareAWorkspace(t *testing.T) {
	const n = 20
	s := newShelf()
	var inside atomic.Int64
	wait := make(chan struct{})
	var once sync.Once
	s.fails = func(what string) error {
		if what == "write" && inside.Add(1) > 1 {
			once.Do(func() { close(wait) })
		}
		if what == "write" {
			select {
			case <-wait:
			case <-time.After(time.Minute):
			}
			inside.Add(-1)
		}
		return nil
	}
	var writes, edits []string
	for i := range n {
		writes = append(writes, fmt.Sprintf("w%d", i), "workspace_write_file", fmt.Sprintf(`{"path":"f%d","content":"x"}`, i))
		edits = append(edits, fmt.Sprintf("e%d", i), "workspace_edit_file", fmt.Sprintf(`{"path":"list","old":"(%d)","new":"[%d]"}`, i, i))
	}
	list := ""
	for i := range n {
		list += fmt.Sprintf("(%d)", i)
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coding(
		scripted.Turn{ToolCalls: calls(append(writes, "l", "workspace_write_file", fmt.Sprintf(`{"path":"list","content":%q}`, list))...)},
		scripted.Turn{ToolCalls: calls(edits...)},
		scripted.Turn{Text: "Done."},
	))
	g.start("s", "coder", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Contains(t, s.files(root), strings.NewReplacer("(", "[", ")", "]").Replace(list))
	require.EqualValues(t, 1, s.opened.Load())
	select {
	case <-wait:
	default:
		require.Fail(t, "no two calls wrote at the same time")
	}
}

// A workspace that can't be opened is the call's failure, and the next one tries
// again. Where on the machine it was is none of the model's business.
func TestAWorkspaceThatFailsIsTriedAgain(t *testing.T) {
	for want, fail := range map[string]func() error{
		"the shelf is full":                func() error { return errors.New("the shelf is full") },
		"invalid argument":                 func() error { return &os.LinkError{Op: "rename", Old: "/a", New: "/b", Err: syscall.EINVAL} },
		"the provider failed unexpectedly": func() error { panic("/a") },
	} {
		t.Run(want, func(t *testing.T) {
			s := newShelf()
			s.fails = func(what string) error {
				if what == "open" && s.opened.Load() == 1 {
					return fail()
				}
				return nil
			}
			g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder(
				"a", "workspace_write_file", `{"path":"a","content":"1"}`,
				"b", "workspace_write_file", `{"path":"b","content":"2"}`,
			))
			g.start("s", "coder", "go")
			state := g.ended("s")
			require.Equal(t, map[string]string{
				"a": "the workspace can't be used: " + want, "b": `{"path":"b","size":1}`,
			}, toolResults(state))
			require.Equal(t, projector.WorkspaceOpen, state.Workspace.Status)
			require.Contains(t, g.types("s"), "[workspace_failed]")
		})
	}
}

// A provider that this node has not is an error of the call's, and of a fork.
func TestAWorkspaceOfAnotherKind(t *testing.T) {
	s, log := newShelf(), memory.New()
	g := newSpaceRig(t, log, s, engine.Options{}, coder("a", "workspace_write_file", `{"path":"a","content":"1"}`))
	g.start("s", "coder", "go")
	g.ended("s")
	g.loop.Stop()
	other := newShelf()
	other.id = "other"
	agent := coder(
		"a", "workspace_write_file", `{"path":"a","content":"1"}`,
		"b", "workspace_read_file", `{"path":"a"}`,
	)
	agent.Workspace.Provider = "other"
	agent.Model = modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		turn := scripted.Turn{ToolCalls: calls("b", "workspace_read_file", `{"path":"a"}`)}
		if last := req.Messages[len(req.Messages)-1]; last.Role == model.RoleTool {
			turn = scripted.Turn{Text: "Done."}
		}
		return script(turn).Generate(ctx, model.Request{}, emit)
	})
	g = newSpaceRig(t, log, other, engine.Options{}, agent)
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
	var wiring *agentloop.WorkspaceWiringError
	require.ErrorAs(t, err, &wiring)
	h, err := g.loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "coder", Messages: []agentloop.Input{{Content: "again"}}})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, `the workspace can't be used: this node has no provider "shelf" of workspaces`, toolResults(stateOf(t, log, "s"))["b"])
}

func TestDescribeWorkspace(t *testing.T) {
	s, log := newShelf(), memory.New()
	agent := coder("a", "workspace_write_file", `{"path":"a","content":"1"}`)
	g := newSpaceRig(t, log, s, engine.Options{Now: func() time.Time { return time.UnixMilli(7) }}, agent,
		agentloop.Agent{Name: "talker", Model: script(scripted.Turn{Text: "Hello."})})
	_, err := g.loop.DescribeWorkspace(t.Context(), "nobody")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	g.start("t", "talker", "go")
	g.ended("t")
	d, err := g.loop.DescribeWorkspace(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, engine.WorkspaceDescription{Kind: engine.WorkspaceNone}, d)
	require.NoError(t, g.loop.Interrupt(t.Context(), "t", ""))

	g.start("s", "coder", "go")
	g.ended("s")
	d, err = g.loop.DescribeWorkspace(t.Context(), "s")
	require.NoError(t, err)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"ok","snapshot":{"name":"files","providerId":"shelf","status":"open","capabilities":["fs","shell","snapshot"],
		"openedAt":7,"lastUsedAt":7,"ref":{"desk":"s"}}}`, string(raw))
	plain := newRigOn(t, log)
	d, err = plain.loop.DescribeWorkspace(t.Context(), "t")
	require.NoError(t, err)
	require.Equal(t, engine.WorkspaceDescription{Kind: engine.WorkspaceNoRuntime}, d)
}

// A process that codes dies at an append; another one continues. The conversation
// and the files are as without that.
func TestFilesSurviveDeathAtAnyAppend(t *testing.T) {
	agent := func() agentloop.Agent {
		return coding(
			scripted.Turn{Text: "A first draft.", ToolCalls: calls(
				"a", "workspace_write_file", `{"path":"main.go","content":"package main"}`,
				"b", "workspace_write_file", `{"path":"note","content":"one"}`,
			)},
			scripted.Turn{ToolCalls: calls("c", "workspace_edit_file", `{"path":"note","old":"one","new":"one two"}`)},
			scripted.Turn{ToolCalls: calls("d", "workspace_read_file", `{"path":"note"}`, "e", "workspace_delete_file", `{"path":"main.go"}`)},
			scripted.Turn{Text: "Done."},
		)
	}
	said := func(t *testing.T, s *projector.Tree) string {
		s = s.Clone()
		s.Messages = slices.Clone(s.Messages)
		for i := range s.Messages { // what is done again says that it was done already
			if m := &s.Messages[i]; m.ToolName == "workspace_edit_file" || m.ToolName == "workspace_delete_file" {
				m.Result = json.RawMessage(`"done"`)
			}
		}
		return outcome(t, s)
	}
	shelf, log := newShelf(), memory.New()
	g := newSpaceRig(t, log, shelf, engine.Options{}, agent())
	g.start("s", "coder", "go")
	want, files := said(t, g.ended("s")), shelf.files(root)
	appends := writes(t, log)
	require.Equal(t, `note: "one two"`, files)
	for _, stored := range []bool{false, true} {
		for after := 1; after < appends; after++ {
			t.Run(fmt.Sprintf("after %d, stored %v", after, stored), func(t *testing.T) {
				t.Parallel()
				store, shelf := memory.New(), newShelf()
				dying := &mortal{Log: store, lastStored: stored, dead: make(chan struct{})}
				dying.left.Store(int64(after))
				first := newSpaceRig(t, dying, shelf, engine.Options{}, agent())
				first.start("s", "coder", "go")
				finished := make(chan struct{})
				go func() {
					defer close(finished)
					for r, err := range store.Follow(t.Context(), "s", 0) {
						if err != nil || r.Type == "stream_end" {
							return
						}
					}
				}()
				select {
				case <-dying.dead:
				case <-finished:
				}
				first.loop.Stop()
				second := newSpaceRig(t, store, shelf, engine.Options{}, agent())
				if !stateOf(t, store, "s").StreamStatus.Terminal() {
					_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
					require.NoError(t, err)
				}
				state := second.ended("s")
				<-finished
				require.Equal(t, want, said(t, state))
				require.Equal(t, files, shelf.files(root))
				require.False(t, state.Workspace.Dirty)
				verifiedAlone(t, store, agent())
			})
		}
	}
}

// verifiedAlone has a session's decisions compared with today's, which touches no
// workspace.
func verifiedAlone(t *testing.T, log eventlog.Log, agents ...agentloop.Agent) {
	t.Helper()
	v, err := verify.Session(t.Context(), log.Read(t.Context(), "s", 0, 0), agents, nil)
	require.NoError(t, err)
	require.Nil(t, v.Differs)
	require.NotZero(t, v.Decisions)
}

// A command that does not hear that its run was taken back writes before the
// files are taken back, not after.
func TestARollbackWaitsForWhatStillWrites(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := newShelf()
	began, may := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.fails = func(what string) error {
		if what == "run" {
			once.Do(func() { close(began); <-may })
		}
		return nil
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder(
		"a", "workspace_write_file", `{"path":"log","content":"a"}`,
		"b", "workspace_run", `{"command":"append b log"}`,
	))
	g.start("s", "coder", "go")
	<-began
	first := stateOf(t, g.log, "s").Checkpoints[0].ID
	_, err := g.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{CheckpointID: first})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	g.until("s", func(r eventlog.Record) bool { return r.Type == "tool_start" && r.Call == "b-2" })
	close(may)
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
	require.Equal(t, `log: "ab"`, s.files(root))
	require.EqualValues(t, 1, s.restored.Load())
}

// A run that waits for a person has kept its files before: a fork made
// meanwhile has them, though the step is not over.
func TestAForkOfARunThatWaitsHasItsFiles(t *testing.T) {
	s := newShelf()
	agent := coding(
		scripted.Turn{ToolCalls: calls("a", "workspace_run", `{"command":"append a log"}`, "b", "ask", `{}`)},
		scripted.Turn{ToolCalls: calls("c", "workspace_run", `{"command":"append c log"}`)},
		scripted.Turn{Text: "Done."},
	)
	agent.Tools = []agentloop.Tool{{Name: "ask", Client: true}}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, agent)
	g.start("s", "coder", "go")
	require.Eventually(t, func() bool { return !g.loop.Live("s") && stateOf(t, g.log, "s").Waits() }, time.Minute, time.Millisecond)
	for range 2 {
		_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, s.adopted.Load(), "a fork that is there is not made again")
	_, err := g.loop.Admin.Erase(t.Context(), "s")
	require.NoError(t, err)
	_, err = g.loop.Submit(t.Context(), engine.Submission{SessionID: "f", ToolCallID: "b", Kind: fact.SubmitClientResult, Result: json.RawMessage("1")})
	require.NoError(t, err)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "f"})
	require.NoError(t, err)
	require.Equal(t, projector.SessionCompleted, g.ended("f").Status)
	require.Equal(t, `log: "ac"`, s.files(workspace.Session{Root: "f", ID: "f"}))
}
