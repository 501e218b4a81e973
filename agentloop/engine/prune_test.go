package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// cleared is a rig with a clock and a session whose workspace has had two
// snapshots.
func cleared(t *testing.T) (g *rig, s *shelf, clock *atomic.Int64) {
	t.Helper()
	s = newShelf()
	g, clock = clearedOn(t, s)
	return g, s, clock
}

func clearedOn(t *testing.T, s *shelf) (g *rig, clock *atomic.Int64) {
	t.Helper()
	clock = new(atomic.Int64)
	clock.Store(1_700_000_000_000)
	g = newSpaceRig(t, memory.New(), s, engine.Options{
		ExpireAfter: time.Hour, Now: func() time.Time { return time.UnixMilli(clock.Load()) },
	}, coding(
		scripted.Turn{ToolCalls: calls("a", "workspace_run", `{"command":"append x log"}`)},
		scripted.Turn{ToolCalls: calls("b", "workspace_run", `{"command":"append y log"}`)},
		scripted.Turn{Text: "Done."},
	))
	g.start("s", "coder", "go")
	g.ended("s")
	return g, clock
}

// An expired session loses its files, once, and records that. A client that continues it
// starts with new files, and the model is notified of what a checkpoint lacks.
func TestASweepRemovesWorkspaces(t *testing.T) {
	g, s, clock := cleared(t)
	first := stateOf(t, g.log, "s").Checkpoints[0].ID
	require.Equal(t, admin.Swept{}, g.sweep(admin.SweepOptions{}))
	clock.Add(time.Hour.Milliseconds())
	require.Equal(t, admin.Swept{Detected: 1, AlreadyTerminal: 1}, g.sweep(admin.SweepOptions{DryRun: true}))
	require.NotEmpty(t, s.trees)
	s.fails = func(what string) error {
		if what == "remove" && s.removed.Load() == 1 {
			return errors.New("the shelf is stuck")
		}
		return nil
	}
	require.Equal(t, admin.Swept{Detected: 1, AlreadyTerminal: 1, Errors: 1}, g.sweep(admin.SweepOptions{}))
	require.Equal(t, admin.Swept{Detected: 1, AlreadyTerminal: 1, SnapshotsDeleted: 2}, g.sweep(admin.SweepOptions{}))
	require.Empty(t, s.trees)
	state := stateOf(t, g.log, "s")
	require.Equal(t, projector.WorkspaceGone, state.Workspace.Status)
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, admin.Swept{Detected: 1, AlreadyTerminal: 1}, g.sweep(admin.SweepOptions{}))

	h, err := g.loop.Handle(t.Context(), "s")
	require.NoError(t, err)
	h, err = h.Resume(t.Context(), engine.ResumeRequest{Mode: fact.ModeFromCheckpoint, CheckpointID: first})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	state = stateOf(t, g.log, "s")
	require.Equal(t, "the files of the workspace are lost: it is empty now", toolResults(state)["b-2"])
	require.Equal(t, projector.WorkspaceOpen, state.Workspace.Status)
}

// A session whose workspace was closed continues without its files, even if they still
// exist where the node that closed it could not reach them. Its model is notified.
func TestWhatWasClosedNeverComesBack(t *testing.T) {
	const lost = "the files of the workspace are lost: it is empty now"
	again := []agentloop.Input{{Content: "again"}}
	goOn := func(t *testing.T, g *rig) {
		_, err := g.loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "coder", Messages: again})
		require.NoError(t, err)
	}
	for _, tt := range []struct {
		name, session     string
		snapshots, failed bool
		then              func(t *testing.T, g *rig)
	}{
		{"with snapshots", "s", true, false, goOn},
		{"without", "s", false, false, goOn},
		{"after a failure", "s", true, true, goOn},
		{"in a fork", "f", true, false, func(t *testing.T, g *rig) {
			_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", Run: true, Messages: again})
			require.NoError(t, err)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			if !tt.snapshots {
				s.offer = s.offer[:2]
			}
			s.fails = func(what string) error {
				if what == "open" && tt.failed && s.opened.Load() == 2 {
					return errors.New("the shelf is stuck")
				}
				return nil
			}
			g, clock := clearedOn(t, s)
			clock.Add(time.Hour.Milliseconds())
			elsewhere := newSpaceRig(t, g.log, newShelf(), engine.Options{Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
			elsewhere.sweep(admin.SweepOptions{})
			require.Equal(t, `log: "xy"`, s.files(root))
			tt.then(t, g)
			g.result(tt.session)
			results, files := toolResults(stateOf(t, g.log, tt.session)), s.files(workspace.Session{Root: tt.session, ID: tt.session})
			if tt.failed {
				require.Equal(t, "the workspace can't be used: the shelf is stuck", results["a-2"])
				require.Equal(t, lost, results["b-2"])
				require.Empty(t, files)
				return
			}
			require.Equal(t, lost, results["a-2"])
			require.Equal(t, `log: "y"`, files)
		})
	}
}

// An erasure removes files before records, so that it can be asked for again.
func TestErasureRemovesWorkspaces(t *testing.T) {
	g, s, _ := cleared(t)
	s.fails = func(what string) error {
		if what == "remove" {
			return errors.New("the shelf is stuck")
		}
		return nil
	}
	_, err := g.loop.Admin.Erase(t.Context(), "s")
	require.ErrorIs(t, err, agentloop.ErrWorkspaceRemains)
	require.Equal(t, projector.SessionCompleted, stateOf(t, g.log, "s").Status, "nothing else is erased")
	s.fails = nil
	e, err := g.loop.Admin.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.False(t, e.Pending)
	require.Empty(t, s.trees)
	_, err = g.log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// A provider whose last bytes are to go keeps an erasure pending, which names them: a client that
// waits for what the nodes do would wait for ever.
func TestAnErasureWaitsForTheLastBytes(t *testing.T) {
	g, s, _ := cleared(t)
	s.fails = func(what string) error {
		if what == "remove" && s.removed.Load() < 3 {
			return workspace.ErrPending
		}
		return nil
	}
	e, err := g.loop.Admin.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, e.Pending)
	require.Equal(t, workspace.ErrPending.Error(), e.Left)
	_, err = g.log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = g.loop.Admin.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "nothing is left")
}

// An erasure is pending that leaves files to another node.
func TestAnErasureTellsOfFilesElsewhere(t *testing.T) {
	for name, erase := range map[string]func(*testing.T, *rig, *shelf) (eventlog.Erasure, error){
		"on another node": func(t *testing.T, g *rig, s *shelf) (eventlog.Erasure, error) {
			s.fails = func(what string) error {
				if what == "resolve" {
					return workspace.ErrElsewhere
				}
				return nil
			}
			return g.loop.Admin.Erase(t.Context(), "s")
		},
		"of a fork": func(t *testing.T, g *rig, s *shelf) (eventlog.Erasure, error) {
			_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
			require.NoError(t, err)
			s.fails = func(what string) error {
				if what == "adopt" {
					return workspace.ErrElsewhere
				}
				return nil
			}
			return g.loop.Admin.Erase(t.Context(), "f")
		},
		"of another kind": func(t *testing.T, g *rig, _ *shelf) (eventlog.Erasure, error) {
			return newRigOn(t, g.log).loop.Admin.Erase(t.Context(), "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, s, _ := cleared(t)
			e, err := erase(t, g, s)
			require.NoError(t, err)
			require.True(t, e.Pending)
		})
	}
}

// Files that belong to no session any more go when that has been so for a
// while: a fork's are there before its log is.
func TestTidy(t *testing.T) {
	g, s, clock := cleared(t)
	tidy := func() admin.Tidied {
		done, err := g.loop.Admin.Tidy(t.Context())
		require.NoError(t, err)
		return done
	}
	require.Equal(t, admin.Tidied{}, tidy())
	_, _, err := s.Open(t.Context(), workspace.Session{Root: "left", ID: "left"})
	require.NoError(t, err)
	require.Equal(t, admin.Tidied{Waiting: 1}, tidy())
	clock.Add(admin.TidyGrace.Milliseconds() - 1)
	require.Equal(t, admin.Tidied{Waiting: 1}, tidy())
	clock.Add(1)
	require.Equal(t, admin.Tidied{Trees: 1}, tidy())
	roots, err := s.Roots(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"s"}, roots)

	// What another node has closed goes, too.
	clock.Add(time.Hour.Milliseconds())
	elsewhere := newSpaceRig(t, g.log, newShelf(), engine.Options{Now: func() time.Time { return time.UnixMilli(clock.Load()) }})
	require.Equal(t, admin.Swept{Detected: 1, AlreadyTerminal: 1}, elsewhere.sweep(admin.SweepOptions{}))
	require.Equal(t, admin.Tidied{Waiting: 1}, tidy())
	clock.Add(admin.TidyGrace.Milliseconds())
	s.fails = func(string) error { return errors.New("the shelf is stuck") }
	require.Equal(t, admin.Tidied{Errors: 1}, tidy())
	s.fails = nil
	require.Equal(t, admin.Tidied{Trees: 1}, tidy())
	require.Empty(t, s.trees)
}

// littered is a shelf whose trees have replaced files.
type littered struct {
	*shelf
	collected []string
}

func (l *littered) Collect(_ context.Context, root string) error {
	l.collected = append(l.collected, root)
	return l.begin("collect", &l.done)
}

// Replaced files of sessions are removed though nobody uses the sessions' workspaces any more.
func TestTidyCollectsReplacedFiles(t *testing.T) {
	s := &littered{shelf: newShelf()}
	g := newSpaceRig(t, memory.New(), s, engine.Options{}, coder("a", "workspace_run", `{"command":"append x log"}`))
	g.start("s", "coder", "go")
	g.ended("s")
	_, _, err := s.Open(t.Context(), workspace.Session{Root: "left", ID: "left"})
	require.NoError(t, err)
	done, err := g.loop.Admin.Tidy(t.Context())
	require.NoError(t, err)
	require.Equal(t, admin.Tidied{Waiting: 1}, done)
	require.Equal(t, []string{"s"}, s.collected)
	s.fails = func(string) error { return errors.New("the shelf is stuck") }
	done, err = g.loop.Admin.Tidy(t.Context())
	require.NoError(t, err)
	require.Equal(t, admin.Tidied{Waiting: 1, Errors: 1}, done)
}

// A node with many trees collects those of a few minutes at a time, and all of them in turn.
func TestTidyCollectsTreesInTurn(t *testing.T) {
	s, clock := &littered{shelf: newShelf()}, new(atomic.Int64)
	s.fails = func(what string) error {
		if what == "collect" {
			clock.Add(time.Minute.Milliseconds())
		}
		return nil
	}
	g := newSpaceRig(t, memory.New(), s, engine.Options{Now: func() time.Time { return time.UnixMilli(clock.Load()) }},
		coder("a", "workspace_run", `{"command":"append x log"}`))
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		g.start(id, "coder", "go")
		g.ended(id)
	}
	collected := func() string {
		s.collected = nil
		done, err := g.loop.Admin.Tidy(t.Context())
		require.NoError(t, err)
		require.Equal(t, admin.Tidied{}, done)
		return strings.Join(s.collected, " ")
	}
	require.Equal(t, "a b c d e", collected())
	_, err := g.loop.Admin.Erase(t.Context(), "e")
	require.NoError(t, err)
	require.Equal(t, "f g a b c", collected())
	require.Equal(t, "d f g a b", collected())
}

// unlisted is a shelf that can't say what is on it.
type unlisted struct{ *shelf }

func (unlisted) Roots(context.Context) ([]string, error) { return nil, errors.New("the shelf is dark") }

// A provider that can't list its files does not keep the files of others.
func TestTidyGoesOnWithTheOtherProviders(t *testing.T) {
	dark, s := unlisted{newShelf()}, newShelf()
	dark.id = "dark" // sorts before the other one
	var now atomic.Int64
	loop, err := engine.New(memory.New(), nil, &engine.Options{
		Workspaces: []workspace.Provider{dark, s}, Now: func() time.Time { return time.UnixMilli(now.Load()) },
	})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	_, _, err = s.Open(t.Context(), workspace.Session{Root: "left", ID: "left"})
	require.NoError(t, err)
	for _, want := range []admin.Tidied{{Waiting: 1}, {Trees: 1}} {
		done, err := loop.Admin.Tidy(t.Context())
		require.ErrorContains(t, err, "dark: the shelf is dark")
		require.Equal(t, want, done)
		now.Add(admin.TidyGrace.Milliseconds())
	}
	require.Empty(t, s.trees)
}

// recreated is a log in which a client creates a session as soon as its id is free again.
type recreated struct {
	eventlog.Log
	by func()
}

func (r *recreated) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	e, err := r.Log.Erase(ctx, session)
	if by := r.by; by != nil && session == "s" {
		r.by = nil
		by()
	}
	return e, err
}

// forgetful is a work list that counts the sessions that it forgets.
type forgetful struct {
	tickets
	forgotten int
}

func (l *forgetful) Forget(context.Context, string) error {
	l.forgotten++
	return nil
}

// The log overwrites the bytes of an erased session while its id is free. If a client creates the next
// session meanwhile, that keeps its files, its memories and its place on the work list.
func TestAnErasureLeavesTheNextSession(t *testing.T) {
	log, list, s := &recreated{Log: memory.New()}, &forgetful{}, newShelf()
	call := scripted.Turn{ToolCalls: calls("a", "workspace_run", `{"command":"append x log"}`)}
	g := newSpaceRig(t, log, s, engine.Options{Worklist: list}, coding(call, scripted.Turn{Text: "Done."}, call, scripted.Turn{Text: "Done."}))
	g.start("s", "coder", "go")
	g.ended("s")
	remember(t, log, "s")
	memories := ""
	log.by = func() {
		g.start("s", "coder", "go")
		g.ended("s")
		memories = remember(t, log, "s")
	}
	_, err := g.loop.Admin.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, projector.SessionCompleted, stateOf(t, log, "s").Status)
	require.NotEmpty(t, s.trees)
	require.Zero(t, list.forgotten)
	_, err = log.Head(t.Context(), memories)
	require.NoError(t, err)

	_, err = g.loop.Admin.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Empty(t, s.trees)
	require.Equal(t, 1, list.forgotten)
	_, err = log.Head(t.Context(), memories)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// An erasure that comes late leaves the next session of the id, with its files, its memories and its place on
// the work list.
func TestALateErasureLeavesTheNextSession(t *testing.T) {
	list, s := &forgetful{}, newShelf()
	call := scripted.Turn{ToolCalls: calls("a", "workspace_run", `{"command":"append x log"}`)}
	g := newSpaceRig(t, memory.New(), s, engine.Options{Worklist: list}, coding(call, scripted.Turn{Text: "Done."}, call, scripted.Turn{Text: "Done."}))
	g.start("s", "coder", "go")
	late := eventlog.WithHead(t.Context(), "s", g.ended("s").Head)
	_, err := g.loop.Admin.Erase(late, "s")
	require.NoError(t, err)
	require.Empty(t, s.trees)
	list.forgotten = 0

	g.start("s", "coder", "go")
	g.ended("s")
	memories := remember(t, g.log, "s")
	_, err = g.loop.Admin.Erase(late, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Equal(t, projector.SessionCompleted, stateOf(t, g.log, "s").Status)
	require.NotEmpty(t, s.trees)
	require.Zero(t, list.forgotten)
	_, err = g.log.Head(t.Context(), memories)
	require.NoError(t, err)
}
