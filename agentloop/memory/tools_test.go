package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// converse has an agent with memories take one turn, and returns the state
// after it.
func converse(t *testing.T, log eventlog.Log, m *memory.Manager, p memory.Policy, session, user, said string, calls ...scripted.Call) *projector.Tree {
	t.Helper()
	turns := []scripted.Turn{{Text: "Good."}}
	if len(calls) > 0 {
		turns = append([]scripted.Turn{{ToolCalls: calls}}, turns...)
	}
	agent := agentloop.Agent{Name: "friend", Model: scripted.New(turns, nil)}
	require.NoError(t, m.Equip(&agent, p))
	loop, err := engine.New(log, []agentloop.Agent{agent}, nil)
	require.NoError(t, err)
	defer loop.Stop()
	run, err := loop.Execute(t.Context(), engine.StartRequest{
		SessionID: session, AgentType: "friend", UserID: user, Messages: []agentloop.Input{{Content: said}},
	})
	require.NoError(t, err)
	_, err = run.Result(t.Context())
	require.NoError(t, err)
	tree := new(projector.Tree)
	for r, err := range log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		projector.Apply(tree, r)
	}
	require.Equal(t, projector.SessionCompleted, tree.Status)
	return tree
}

func call(id, tool, arguments string) scripted.Call {
	return scripted.Call{ID: id, Name: tool, Arguments: json.RawMessage(arguments)}
}

// A user's and an agent's memories stay in their tenant: another one that gives its
// user the same name learns nothing of them, nor does a session without a tenant.
func TestTenantsHaveMemoriesOfTheirOwn(t *testing.T) {
	m := newManager(t, memory.Options{})
	for _, kind := range []eventlog.MemoryScopeKind{eventlog.MemoryOfUser, eventlog.MemoryOfAgent} {
		p := memory.Policy{Scope: kind, Recall: 3, Save: true, Search: true}
		agent := agentloop.Agent{Name: "friend"}
		require.NoError(t, m.Equip(&agent, p))
		save, search := agent.Tools[0], agent.Tools[1]
		info := func(tenant string) agentloop.SessionInfo {
			return agentloop.SessionInfo{UserID: "ann", AgentType: "friend", SessionID: "s", RootSessionID: "s", Tenant: tenant}
		}
		_, err := save.Execute(t.Context(), &agentloop.Call{IdempotencyKey: "k", SessionInfo: info("red")}, object(`{"content":"the dog is called Rex"}`))
		require.NoError(t, err)
		for tenant, want := range map[string]bool{"red": true, "blue": false, "": false} {
			found, err := search.Execute(t.Context(), &agentloop.Call{SessionInfo: info(tenant)}, object(`{"query":"dog"}`))
			require.NoError(t, err)
			if !want {
				require.NotContains(t, fmt.Sprint(found), "Rex", "%s of %q", kind, tenant)
				require.Empty(t, recall(t, m, info(tenant), p, "dog"), "%s of %q", kind, tenant)
				continue
			}
			require.Contains(t, fmt.Sprint(found), "Rex")
			require.Equal(t, []string{"the dog is called Rex"}, recall(t, m, info(tenant), p, "dog"))
		}
	}
}

// results returns what the calls of a session gave, by id.
func results(tree *projector.Tree) map[string]projector.Message {
	all := map[string]projector.Message{}
	for _, m := range tree.Messages {
		if m.Role == projector.RoleTool {
			all[m.ToolCallID] = m
		}
	}
	return all
}

// TestAnAgentRemembersAUser across conversations.
func TestAnAgentRemembersAUser(t *testing.T) {
	log := logmemory.New()
	m := newManager(t, memory.Options{Log: log, Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	p := memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3, Save: true, Search: true}
	first := converse(t, log, m, p, "one", "ada", "My dog is called Rex.",
		call("c1", memory.SaveTool, `{"content":"The user's dog is called Rex.","tags":["pets"]}`))
	require.Empty(t, first.RecalledIDs(), "there was nothing yet")
	listed, err := m.List(t.Context(), ada, readmodel.Paging{})
	require.NoError(t, err)
	require.Len(t, listed.Value.Items, 1)
	kept := listed.Value.Items[0]
	require.Equal(t, []string{"pets"}, kept.Tags)
	require.Equal(t, &fact.MemorySource{SessionID: "one", AgentType: "friend", RunID: first.Runs[0].RunID, ToolCallID: "c1"}, kept.Source)
	require.JSONEq(t, `{"memoryId":"`+kept.ID+`"}`, string(results(first)["c1"].Result))

	second := converse(t, log, m, p, "two", "ada", "What is my dog called?", call("c1", memory.SearchTool, `{"query":"dog"}`))
	require.Equal(t, []string{kept.ID}, second.RecalledIDs())
	require.JSONEq(t, `{"memories":[{"memoryId":"`+kept.ID+`","content":"The user's dog is called Rex.","tags":["pets"],"savedAt":"2023-11-14T22:13:20Z"}]}`,
		string(results(second)["c1"].Result))

	another := converse(t, log, m, p, "three", "bob", "What is my dog called?", call("c1", memory.SearchTool, `{"query":"dog"}`))
	require.Empty(t, another.RecalledIDs())
	require.JSONEq(t, `{"memories":[]}`, string(results(another)["c1"].Result))
}

func TestWhatAToolRefusesIsToldToTheModel(t *testing.T) {
	log := logmemory.New()
	m := newManager(t, memory.Options{Log: log})
	p := memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3, Save: true, Search: true}
	tree := converse(t, log, m, p, "s", "", "Remember me!",
		call("c1", memory.SaveTool, `{"content":"x"}`), call("c2", memory.SearchTool, `{"query":"x"}`))
	for _, id := range []string{"c1", "c2"} {
		got := results(tree)[id]
		require.Equal(t, agentloop.CodeToolFailed, got.ErrorCode)
		require.Equal(t, "nobody has said whose this conversation is: there is no user whose memories it could have", got.Error)
	}
	p.Scope = eventlog.MemoryOfSession
	tree = converse(t, log, m, p, "t", "", "Remember this!",
		call("c1", memory.SaveTool, `{"content":" "}`), call("c2", memory.SearchTool, `{"query":"x","limit":500}`),
		call("c3", memory.SaveTool, `{"content":"x","why":"y"}`))
	require.Equal(t, "content must not be empty", results(tree)["c1"].Error)
	require.Equal(t, "limit must be between 1 and 50", results(tree)["c2"].Error)
	require.Equal(t, agentloop.CodeToolInput, results(tree)["c3"].ErrorCode)
}

// TestACallThatIsMadeAgain, as after a crash, has saved its memory once, also if
// that was forgotten meanwhile.
func TestACallThatIsMadeAgain(t *testing.T) {
	m := newManager(t, memory.Options{})
	var agent agentloop.Agent
	agent.Name = "friend"
	require.NoError(t, m.Equip(&agent, memory.Policy{Scope: eventlog.MemoryOfUser, Save: true}))
	c := &agentloop.Call{ID: "c", IdempotencyKey: "run:c", SessionInfo: agentloop.SessionInfo{UserID: "ada", SessionID: "s"}}
	var before any
	for range 3 {
		answer, err := agent.Tools[0].Execute(t.Context(), c, object(`{"content":"Ada likes tea."}`))
		require.NoError(t, err)
		if before != nil {
			require.Equal(t, before, answer)
		}
		before = answer
		for _, hit := range search(t, m, "tea").Hits {
			require.NoError(t, m.Forget(t.Context(), ada, hit.ID))
		}
	}
	require.Empty(t, search(t, m, "tea").Hits)
}

// full is a log that takes nothing for a while, from the first memory on.
type full struct {
	eventlog.Log
	first error // what becomes of that
	begin sync.Once
	on    atomic.Bool
}

const fullFor = 45 * time.Second

func (l *full) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (last uint64, err error) {
	if eventlog.IsMemoryLog(session) {
		l.begin.Do(func() {
			l.on.Store(true)
			time.AfterFunc(fullFor, func() { l.on.Store(false) })
			err = l.first
		})
	}
	switch {
	case err != nil:
		return 0, err
	case l.on.Load():
		return 0, eventlog.ErrRefused
	}
	return l.Log.Append(ctx, session, expected, entries)
}

func (l *full) Info() eventlog.Info {
	info := l.Log.Info()
	if l.on.Load() {
		info.Refuses = "the disk is full"
	}
	return info
}

// TestSavingWaitsForALogThatTakesNothing: a call is no failure because of a disk
// that is full for now, and has saved its memory once when it is not.
func TestSavingWaitsForALogThatTakesNothing(t *testing.T) {
	for _, first := range []error{eventlog.ErrRefused, eventlog.ErrUnavailable, eventlog.ErrOutcomeUnknown} {
		t.Run(first.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &full{Log: logmemory.New(), first: first}
				m := newManager(t, memory.Options{Log: log})
				began := time.Now()
				tree := converse(t, log, m, memory.Policy{Scope: eventlog.MemoryOfUser, Save: true}, "s", "ada", "I like tea.",
					call("c1", memory.SaveTool, `{"content":"The user likes tea."}`))
				require.GreaterOrEqual(t, time.Since(began), fullFor)
				require.Less(t, time.Since(began), 2*fullFor)
				found := search(t, m, "tea").Hits
				require.Len(t, found, 1)
				require.JSONEq(t, `{"memoryId":"`+found[0].ID+`"}`, string(results(tree)["c1"].Result))
				require.Equal(t, []string{"memory_saved", "memory_embedded"}, typesOf(t, log, ada))
				require.Equal(t, 1, tree.Runs[0].Claims)
			})
		})
	}
}

// TestACallThatIsStopped waits for no log.
func TestACallThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, memory.Options{Log: refusing{logmemory.New()}})
		agent := agentloop.Agent{Name: "friend"}
		require.NoError(t, m.Equip(&agent, memory.Policy{Scope: eventlog.MemoryOfUser, Save: true}))
		gone := errors.New("gone home")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, gone)
		defer cancel()
		began := time.Now()
		_, err := agent.Tools[0].Execute(ctx, &agentloop.Call{IdempotencyKey: "k", SessionInfo: agentloop.SessionInfo{UserID: "ada", SessionID: "s"}}, object(`{"content":"x"}`))
		require.ErrorIs(t, err, gone)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// TestAnIndexThatIsAway costs a turn what it would have been reminded of, and says
// so in words that name nothing of the machine.
func TestAnIndexThatIsAway(t *testing.T) {
	log := logmemory.New()
	m := newManager(t, memory.Options{Log: log, Index: &index{log: log, down: fmt.Errorf("%w: open /secret/index.db", readmodel.ErrUnavailable)}})
	p := memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3, Search: true}
	tree := converse(t, log, m, p, "s", "ada", "Tea?", call("c1", memory.SearchTool, `{"query":"tea"}`))
	require.Equal(t, "memories can't be looked up now", results(tree)["c1"].Error)
	for r, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		require.NotContains(t, string(r.Payload), "secret")
	}
}
