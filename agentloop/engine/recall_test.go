package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

type recallFunc func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error)

func (f recallFunc) Recall(ctx context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	return f(ctx, req)
}

// recalls recalls the same memories at any time: id and content of each.
func recalls(words ...string) agentloop.Recaller {
	var all []fact.RecalledMemory
	for ; len(words) > 0; words = words[2:] {
		all = append(all, fact.RecalledMemory{MemoryID: words[0], Content: words[1], Score: 1})
	}
	return recallFunc(func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error) { return all, nil })
}

// recalled returns what the session's log says was recalled, turn by turn.
func (g *rig) recalled(session string) (all []*fact.MemoryRecalled) {
	g.t.Helper()
	for r, err := range g.log.Read(g.t.Context(), session, 0, 0) {
		require.NoError(g.t, err)
		if f, err := r.Fact(); err == nil {
			if f, ok := f.(*fact.MemoryRecalled); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// The model sees recalled memories before it answers. They stay for later turns and are
// not added again.
func TestAnAgentIsRemindedOnce(t *testing.T) {
	var asked []agentloop.RecallRequest
	var seen []model.Request
	answers := script(done)
	g := newRig(t, agentloop.Agent{
		Name: "a",
		Recall: recallFunc(func(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
			asked = append(asked, req)
			return []fact.RecalledMemory{{MemoryID: "tea", Content: "They like\ntea."}, {MemoryID: "tea", Content: "twice"}}, nil
		}),
		Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			seen = append(seen, req)
			return answers.Generate(ctx, model.Request{}, emit)
		}),
	})
	start := engine.StartRequest{
		SessionID: "s", AgentType: "a", UserID: "ada", Messages: []agentloop.Input{{Content: "Something to drink?"}, {Content: "Please."}},
	}
	for range 2 {
		h, err := g.loop.Execute(t.Context(), start)
		require.NoError(t, err)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		start.Messages = []agentloop.Input{{Content: "And now?"}}
	}
	info := agentloop.SessionInfo{RootSessionID: "s", SessionID: "s", AgentType: "a", UserID: "ada"}
	require.Equal(t, []agentloop.RecallRequest{
		{SessionInfo: info, Query: "Something to drink?\nPlease."},
		{SessionInfo: info, Query: "And now?", Known: []string{"tea"}},
	}, asked)
	require.Len(t, seen, 2)
	const reminder = "What you remember that may matter here:\n- They like tea.\n"
	require.Len(t, seen[0].Messages, 3)
	require.Equal(t, reminder, seen[0].Messages[2].Content)
	require.Len(t, seen[1].Messages, 5)
	require.Equal(t, reminder, seen[1].Messages[2].Content)

	found := g.recalled("s")
	require.Len(t, found, 2)
	require.Len(t, found[0].Memories, 1)
	require.Empty(t, found[1].Memories)
	require.True(t, stateOf(t, g.log, "s").Messages[2].Hidden())
}

// A turn continues without memories, and says why, whatever is wrong with them.
func TestATurnGoesOnWithoutMemories(t *testing.T) {
	for name, c := range map[string]struct {
		found []fact.RecalledMemory
		err   error
		panic bool
		want  string // of the recorded error
	}{
		"an error":             {err: errors.New("the index is away"), want: "the index is away"},
		"an error of no words": {err: errors.New(""), want: "the recaller failed"},
		"a long error":         {err: errors.New(strings.Repeat("x", 1<<20)), want: "xxx"},
		"a panic":              {panic: true, want: "the recaller failed unexpectedly"},
		"no id":                {found: []fact.RecalledMemory{{Content: "x"}}, want: "can't be recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, agentloop.Agent{
				Name: "a", Model: script(done),
				Recall: recallFunc(func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
					if c.panic {
						panic("out of memory")
					}
					return c.found, c.err
				}),
			})
			g.start("s", "a", "go")
			require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
			found := g.recalled("s")
			require.Len(t, found, 1)
			require.Contains(t, found[0].Error, c.want)
			require.LessOrEqual(t, len(found[0].Error), agentloop.MaxErrorText)
			require.Empty(t, found[0].Memories)
		})
	}
}

// More than an agent can use is left out, and numbers that are none are no
// reason to have nothing.
func TestRecallIsBounded(t *testing.T) {
	var many []fact.RecalledMemory
	for i := range 2 * agentloop.MaxRecalled {
		many = append(many, fact.RecalledMemory{MemoryID: strings.Repeat("m", i+1), Content: "x", Score: -1})
	}
	many[0].Score = math.NaN()
	many[1].Content = strings.Repeat("y", agentloop.MaxRecalledText+1)
	g := newRig(t, agentloop.Agent{
		Name: "a", Model: script(done),
		Recall: recallFunc(func(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
			if len(req.Query) > agentloop.MaxRecallQuery {
				return nil, errors.New("that is too much")
			}
			return many, nil
		}),
	})
	g.start("s", "a", strings.Repeat("ü", agentloop.MaxRecallQuery))
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
	found := g.recalled("s")
	require.Len(t, found, 1)
	require.Empty(t, found[0].Error)
	require.Len(t, found[0].Memories, agentloop.MaxRecalled)
	for _, m := range found[0].Memories {
		require.Zero(t, m.Score)
		require.Equal(t, "x", m.Content)
	}
}

// A recaller that hangs is left running.
func TestATurnDoesNotWaitForARecallerForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		g := newRig(t, agentloop.Agent{
			Name: "a", Model: script(done),
			Recall: recallFunc(func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
				<-release // it ignores its context
				return nil, nil
			}),
		})
		began := time.Now()
		g.start("s", "a", "go")
		require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
		require.Equal(t, agentloop.RecallTimeout, time.Since(began))
		require.Equal(t, "the recaller took longer than 5s", g.recalled("s")[0].Error)
		close(release)
	})
}

// A stop does not wait for a recaller, and who continues asks again.
func TestARunIsStoppedWhileItRecalls(t *testing.T) {
	for _, abort := range []bool{false, true} {
		asks := make(chan struct{}, 2)
		answer := make(chan struct{})
		g := newRig(t, agentloop.Agent{
			Name: "a", Model: script(done),
			Recall: recallFunc(func(ctx context.Context, _ agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
				asks <- struct{}{}
				select {
				case <-answer:
					return []fact.RecalledMemory{{MemoryID: "m", Content: "x"}}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}),
		})
		g.start("s", "a", "go")
		<-asks
		if abort {
			require.NoError(t, g.loop.Abort(t.Context(), "s", ""))
			require.Equal(t, projector.SessionFailed, g.ended("s").Status)
			require.Empty(t, g.recalled("s"))
			require.Empty(t, stateOf(t, g.log, "s").Parked)
			continue
		}
		require.NoError(t, g.loop.Interrupt(t.Context(), "s", ""))
		g.comes("s", func(s *projector.Tree) bool { return s.Status == projector.SessionInterrupted })
		require.Empty(t, g.recalled("s"))
		close(answer)
		_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
		require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
		require.Len(t, g.recalled("s"), 1)
		require.Empty(t, g.recalled("s")[0].Error)
	}
}

// A fork whose question is another one is reminded of what fits that.
func TestAForkWithAnotherQuestionRecallsAnew(t *testing.T) {
	g := newRig(t, agentloop.Agent{
		Name: "a", Model: script(done),
		Recall: recallFunc(func(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
			return []fact.RecalledMemory{{MemoryID: req.Query, Content: "About " + req.Query}}, nil
		}),
	})
	g.start("s", "a", "tea")
	g.ended("s")
	_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{
		FromSessionID: "s", NewSessionID: "f", Run: true, Edit: timetravel.ForkEdit{Message: &timetravel.MessageEdit{Content: "coffee"}},
	})
	require.NoError(t, err)
	state := g.ended("f")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, []string{"coffee"}, state.RecalledIDs())

	// One that continues as it was keeps what was recalled.
	at := 1
	_, err = g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "g", Run: true, MessageIndex: &at})
	require.NoError(t, err)
	require.Equal(t, []string{"tea"}, func() []string { s := g.ended("g"); return s.RecalledIDs() }())
	require.Empty(t, g.recalled("g"))
}

// What is taken back was not recalled: the turn is reminded again.
func TestARetriedTurnRecallsAnew(t *testing.T) {
	times := 0
	log := memory.New()
	g := newRigOn(t, log, agentloop.Agent{
		Name: "a", Model: script(done),
		Recall: recallFunc(func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
			times++
			return []fact.RecalledMemory{{MemoryID: "m", Content: strings.Repeat("again ", times)}}, nil
		}),
	})
	g.start("s", "a", "go")
	g.ended("s")
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeRetry})
	require.NoError(t, err)
	g.comes("s", func(s *projector.Tree) bool { return s.Status == projector.SessionCompleted && len(s.Runs) == 2 })
	state := stateOf(t, log, "s")
	require.Len(t, state.Messages, 3)
	require.Contains(t, state.Messages[1].Content, "again again")
}

// remember has a session remember something, as its own call does.
func remember(t *testing.T, log eventlog.Log, session string) (memories string) {
	t.Helper()
	memories = eventlog.MemoryScope{Kind: eventlog.MemoryOfSession, ID: session}.LogID()
	e, err := eventlog.NewFact(memories, &fact.MemorySaved{
		MemoryID: "m", Content: "x", Base: fact.Base{SessionID: memories, Timestamp: 1},
	}, eventlog.Labels{})
	require.NoError(t, err)
	_, err = log.Append(t.Context(), memories, 0, []eventlog.Entry{e})
	require.NoError(t, err)
	return memories
}

// What only a session remembers goes with it, and can be erased when the session
// is gone already.
func TestErasingASessionErasesItsMemories(t *testing.T) {
	log := memory.New()
	g := newRigOn(t, log, agentloop.Agent{Name: "a", Model: script(done)})
	g.start("s", "a", "go")
	g.ended("s")
	for range 2 {
		memories := remember(t, log, "s") // the second time by a call that was under way
		e, err := g.loop.Admin.Erase(t.Context(), "s")
		require.NoError(t, err)
		require.False(t, e.Pending)
		for _, id := range []string{"s", memories} {
			_, err = log.Head(t.Context(), id)
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		}
		_, err = g.loop.Admin.Erase(t.Context(), "s")
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
}

// unerasable is a log some of which can't be erased now.
type unerasable struct {
	eventlog.Log
	which func(session string) bool
}

func (u *unerasable) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	if u.which(session) {
		return eventlog.Erasure{}, eventlog.ErrUnavailable
	}
	return u.Log.Erase(ctx, session)
}

// Wherever an erasure breaks off, the session is there to be erased again for as
// long as its memories are.
func TestAnErasureThatBreaksOff(t *testing.T) {
	for name, which := range map[string]func(string) bool{
		"before the memories": eventlog.IsMemoryLog,
		"after them":          func(session string) bool { return session == "s" },
	} {
		t.Run(name, func(t *testing.T) {
			log := &unerasable{Log: memory.New(), which: which}
			g := newRigOn(t, log, agentloop.Agent{Name: "a", Model: script(done)})
			g.start("s", "a", "go")
			g.ended("s")
			memories := remember(t, log, "s")
			e, err := g.loop.Admin.Erase(t.Context(), "s")
			require.ErrorIs(t, err, eventlog.ErrUnavailable)
			require.False(t, e.Pending, "it is found")
			_, err = log.Head(t.Context(), "s")
			require.NoError(t, err)
			log.which = func(string) bool { return false }
			_, err = g.loop.Admin.Erase(t.Context(), "s")
			require.NoError(t, err)
			_, err = log.Head(t.Context(), memories)
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		})
	}
}

// A session that is called as the digest of a longer id takes nobody's memories
// with it.
func TestErasingASessionErasesNoOthersMemories(t *testing.T) {
	log := memory.New()
	g := newRigOn(t, log, agentloop.Agent{Name: "a", Model: script(done)})
	memories := remember(t, log, strings.Repeat("s", eventlog.MaxSessionID))
	_, intruder, _ := strings.Cut(memories, "/session/")
	g.start(intruder, "a", "go")
	g.ended(intruder)
	_, err := g.loop.Admin.Erase(t.Context(), intruder)
	require.NoError(t, err)
	_, err = log.Head(t.Context(), memories)
	require.NoError(t, err)
}

// Operators see how often agents are reminded and of how much, and not of what.
func TestRecallIsSeenInTracesAndMetrics(t *testing.T) {
	agents := []agentloop.Agent{
		{Name: "a", Model: script(done), Recall: recalls("m", "a secret", "n", "another secret")},
		{Name: "none", Model: script(done), Recall: recalls()},
		{Name: "broken", Model: script(done), Recall: recallFunc(func(context.Context, agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
			return nil, errors.New("a secret of the index")
		})},
	}
	g, reg := measured(t, memory.New(), agents...)
	for _, a := range agents {
		g.start(a.Name, a.Name, "go")
		g.ended(a.Name)
	}
	require.Subset(t, scraped(t, reg), []string{
		`helixd_recall_duration_seconds_count{agent="a",outcome="found"} 1`,
		`helixd_recall_duration_seconds_count{agent="none",outcome="nothing"} 1`,
		`helixd_recall_duration_seconds_count{agent="broken",outcome="failed"} 1`,
	})
	require.NotContains(t, strings.Join(scraped(t, reg), "\n"), "secret")

	for agent, n := range map[string]int64{"a": 2, "broken": 0} {
		traced := newTracedRig(t, memory.New(), false, agents...)
		traced.start("s", agent, "go")
		traced.ended("s")
		spans := traced.rest("s")
		run := spans["invoke_agent "+agent]
		require.Len(t, run, 1)
		require.Equal(t, []string{"recalled"}, events(run[0]))
		require.Equal(t, n, valueOf(run[0].Events[0].Attributes, "helix.memories"))
		require.NotContains(t, fmt.Sprint(spans), "secret")
	}
}
