package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// A snapshot that fails keeps no step from being committed; the next use has it
// tried again.
func TestASnapshotThatFailsIsTakenLater(t *testing.T) {
	s := newShelf()
	s.fails = func(what string) error {
		if what == "take" && s.taken.Load() == 1 {
			panic("the shelf fell down")
		}
		return nil
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder(
		"a", "workspace_write_file", `{"path":"a","content":"1"}`,
		"b", "workspace_list_files", `{}`,
	))
	g.start("s", "coder", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.False(t, state.Workspace.Dirty)
	require.NotEmpty(t, state.Workspace.Snapshot)
	require.EqualValues(t, 2, s.taken.Load())
}

// A model is told once that its files are gone.
func TestLostFilesAreToldOnce(t *testing.T) {
	for name, want := range map[string]string{"with snapshots": "the files of the workspace are lost: it is empty now", "without": "the files of the workspace are lost: it is empty now"} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			if name == "without" {
				s.offer = s.offer[:2]
			}
			log := memory.New()
			agent := coder(
				"a", "workspace_write_file", `{"path":"a","content":"1"}`,
				"b", "ask", `{}`,
				"c", "workspace_read_file", `{"path":"a"}`,
				"d", "workspace_write_file", `{"path":"d","content":"2"}`,
			)
			agent.Tools = []agentloop.Tool{{Name: "ask", Client: true}}
			g := newSpaceRig(t, log, s, engine.Options{}, agent)
			g.start("s", "coder", "go")
			require.Eventually(t, func() bool { return !g.loop.Live("s") && stateOf(t, log, "s").Waits() }, time.Minute, time.Millisecond)
			_, err := s.Remove(t.Context(), "s")
			require.NoError(t, err)
			_, err = g.loop.Submit(t.Context(), engine.Submission{SessionID: "s", ToolCallID: "b", Kind: fact.SubmitClientResult, Result: json.RawMessage("1")})
			require.NoError(t, err)
			_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
			require.NoError(t, err)
			state := g.ended("s")
			require.Equal(t, want, toolResults(state)["c"])
			require.Equal(t, `{"path":"d","size":1}`, toolResults(state)["d"])
			require.Equal(t, `d: "2"`, s.files(root))
		})
	}
}

// A model is notified that its files were lost also if they can't be restored at once, or if the
// node dies between making the workspace again and recording that.
func TestLostFilesAreToldThoughRestoringBreaksOff(t *testing.T) {
	const back = "the workspace was lost: its files are those of the last step that was saved"
	for name, want := range map[string]map[string]string{
		"restoring fails": {"c": "the workspace can't be used: the shelf is full", "d": back},
		"the node dies":   {"c": back, "d": `{"path":"d","size":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := newShelf(), memory.New()
			log := &mortal{Log: store, dead: make(chan struct{})}
			log.left.Store(1 << 30)
			agent := coder(
				"a", "workspace_write_file", `{"path":"a","content":"1"}`,
				"b", "ask", `{}`,
				"c", "workspace_list_files", `{}`,
				"d", "workspace_write_file", `{"path":"d","content":"2"}`,
				"e", "workspace_write_file", `{"path":"e","content":"3"}`,
				"f", "workspace_read_file", `{"path":"a"}`,
			)
			agent.Tools = []agentloop.Tool{{Name: "ask", Client: true}}
			g := newSpaceRig(t, log, s, engine.Options{}, agent)
			g.start("s", "coder", "go")
			require.Eventually(t, func() bool { return !g.loop.Live("s") && stateOf(t, store, "s").Waits() }, time.Minute, time.Millisecond)
			s.lose(root)
			s.fails = func(what string) error {
				if what != "restore" || s.restored.Load() > 1 {
					return nil
				}
				if name == "the node dies" {
					log.left.Store(0)
					return nil
				}
				return errors.New("the shelf is full")
			}
			_, err := g.loop.Submit(t.Context(), engine.Submission{SessionID: "s", ToolCallID: "b", Kind: fact.SubmitClientResult, Result: json.RawMessage("1")})
			require.NoError(t, err)
			_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
			require.NoError(t, err)
			if name == "the node dies" {
				<-log.dead
				g.loop.Stop()
				g = newSpaceRig(t, store, s, engine.Options{}, agent)
				_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
				require.NoError(t, err)
			}
			results := toolResults(g.ended("s"))
			for call, result := range want {
				require.Equal(t, result, results[call], call)
			}
			require.Contains(t, results["f"], `"content":"1"`)
		})
	}
}

// Files that somebody removes while they are used are looked for once more.
func TestFilesThatGoMeanwhileAreTold(t *testing.T) {
	s := newShelf()
	writes := 0
	s.fails = func(what string) error {
		if what == "write" {
			if writes++; writes == 2 {
				_, err := s.Remove(context.Background(), "s")
				return err
			}
		}
		return nil
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder(
		"a", "workspace_write_file", `{"path":"a","content":"1"}`,
		"b", "workspace_write_file", `{"path":"b","content":"2"}`,
		"c", "workspace_write_file", `{"path":"c","content":"3"}`,
	))
	g.start("s", "coder", "go")
	require.Equal(t, map[string]string{
		"a": `{"path":"a","size":1}`, "b": "the files of the workspace are lost: it is empty now", "c": `{"path":"c","size":1}`,
	}, toolResults(g.ended("s")))
	require.Equal(t, `c: "3"`, s.files(root))
}

const behind = "the files are behind the conversation: they are those of the last step that was saved, if any was"

// A fork's model is told if its files lack what the conversation has.
func TestAForkIsToldWhatWasNotSaved(t *testing.T) {
	for saved, want := range map[int64]string{0: "y", 1: "xy"} {
		t.Run(fmt.Sprint("after ", saved), func(t *testing.T) {
			s := newShelf()
			s.fails = func(what string) error {
				if what == "take" && s.taken.Load() > saved {
					return errors.New("the shelf is full")
				}
				return nil
			}
			g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder(
				"a", "workspace_run", `{"command":"append x log"}`,
				"b", "workspace_run", `{"command":"append y log"}`,
			))
			g.start("s", "coder", "go")
			g.ended("s")
			_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{
				FromSessionID: "s", NewSessionID: "f", Run: true, Messages: []agentloop.Input{{Content: "again"}},
			})
			require.NoError(t, err)
			g.result("f")
			fork := toolResults(stateOf(t, g.log, "f"))
			require.Equal(t, behind, fork["a-2"])
			require.Equal(t, `{"exitCode":0,"stdout":"`+want+`","stderr":""}`, fork["b-2"])
		})
	}
}

// A fork of a session that could not open its workspace is told nothing.
func TestAForkOfWhatWasNeverOpened(t *testing.T) {
	s := newShelf()
	s.fails = func(what string) error {
		if what == "open" && s.opened.Load() == 1 {
			return errors.New("the shelf is full")
		}
		return nil
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coding(
		scripted.Turn{ToolCalls: calls("a", "workspace_run", `{"command":"append x log"}`)},
		scripted.Turn{ToolCalls: calls("b", "workspace_run", `{"command":"append y log"}`)},
		scripted.Turn{Text: "Done."},
	))
	g.start("s", "coder", "go")
	first := g.ended("s").Checkpoints[0].ID
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", At: timetravel.Target{CheckpointID: first}, Run: true})
	require.NoError(t, err)
	require.Equal(t, `{"exitCode":0,"stdout":"y","stderr":""}`, toolResults(g.ended("f"))["b"])
}

// A rollback's model is told if the files that come back lack what the
// conversation has, and of nothing else.
func TestARollbackIsToldWhatWasNotSaved(t *testing.T) {
	second := func(s *projector.Tree) uint64 { return s.Checkpoints[1].StreamSequence }
	for name, tt := range map[string]struct {
		fails func(s *shelf, what string) bool
		to    func(s *projector.Tree) uint64
		told  string
		want  string // is in the file
	}{
		"of a step": {
			func(s *shelf, what string) bool { return what == "take" && s.taken.Load() == 2 },
			second, behind, "xd",
		},
		"within a step": {
			func(*shelf, string) bool { return false },
			func(s *projector.Tree) uint64 {
				return s.Messages[slices.IndexFunc(s.Messages, func(m projector.Message) bool { return m.ToolCallID == "b" })].Sequence
			},
			behind, "xd",
		},
		"all was, but the files can't be taken back at once": {
			func(s *shelf, what string) bool { return what == "restore" && s.restored.Load() == 1 },
			second, "the workspace can't be used: the shelf is full", "xyd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.fails = func(what string) error {
				if tt.fails(s, what) {
					return errors.New("the shelf is full")
				}
				return nil
			}
			g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder(
				"a", "workspace_run", `{"command":"append x log"}`,
				"b", "workspace_run", `{"command":"append y log"}`,
				"c", "workspace_run", `{"command":"append z log"}`,
				"d", "workspace_run", `{"command":"append d log"}`,
			))
			g.start("s", "coder", "go")
			_, err := g.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{Sequence: tt.to(g.ended("s"))})
			require.NoError(t, err)
			_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
			require.NoError(t, err)
			g.result("s")
			got := toolResults(stateOf(t, g.log, "s"))
			require.Equal(t, tt.told, got["c-2"])
			require.Equal(t, `{"exitCode":0,"stdout":"`+tt.want+`","stderr":""}`, got["d-2"])
		})
	}
}

// A fork of a checkpoint whose snapshot is gone begins without files, is told
// so, and continues. The provider is a real one.
func TestAForkWhoseSnapshotIsGone(t *testing.T) {
	p, err := local.New(t.TempDir(), nil)
	require.NoError(t, err)
	agent := coder(
		"a", "workspace_write_file", `{"path":"a","content":"1"}`,
		"b", "workspace_write_file", `{"path":"b","content":"2"}`,
		"c", "workspace_list_files", `{}`,
	)
	agent.Workspace = &agentloop.Workspace{Provider: local.ID}
	g := newSpaceRig(t, memory.New(), p, engine.Options{}, agent)
	g.start("s", "coder", "go")
	first := g.ended("s").Checkpoints[0].ID
	_, err = p.Remove(t.Context(), "s")
	require.NoError(t, err)
	_, err = g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", At: timetravel.Target{CheckpointID: first}, Run: true})
	require.NoError(t, err)
	fork := toolResults(g.ended("f"))
	require.Equal(t, "the files of the workspace are lost: it is empty now", fork["b"])
	require.Equal(t, `{"path":".","entries":[]}`, fork["c"])
}

// Without snapshots a rollback leaves the files, and a fork begins without: the
// model is told so, once.
func TestFilesWithoutSnapshots(t *testing.T) {
	s := newShelf()
	s.offer = s.offer[:2]
	turn := func(id string) scripted.Turn {
		return scripted.Turn{ToolCalls: calls(id, "workspace_run", `{"command":"append x log"}`)}
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coding(turn("a"), turn("b"), turn("c"), scripted.Turn{Text: "Done."}))
	g.start("s", "coder", "go")
	first := g.ended("s").Checkpoints[0].ID
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", At: timetravel.Target{CheckpointID: first}, Run: true})
	require.NoError(t, err)
	fork := g.ended("f")
	require.Contains(t, toolResults(fork)["b"], "this workspace keeps no snapshots, and is empty")
	require.Equal(t, `{"exitCode":0,"stdout":"x","stderr":""}`, toolResults(fork)["c"])

	h, err := g.loop.Handle(t.Context(), "s")
	require.NoError(t, err)
	h, err = h.Resume(t.Context(), engine.ResumeRequest{Mode: fact.ModeFromCheckpoint, CheckpointID: first})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	back := stateOf(t, g.log, "s")
	require.Contains(t, toolResults(back)["b-2"], "the files were not")
	require.Equal(t, `{"exitCode":0,"stdout":"xxxx","stderr":""}`, toolResults(back)["c-2"])
}
