package lab_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// server is a remote agent's that is up or not.
type server struct {
	up    bool
	asked atomic.Int64
}

var errDown = errors.New("the server is down")

func (s *server) Start(_ context.Context, req remote.StartRequest) (remote.Started, error) {
	s.asked.Add(1)
	if !s.up {
		return remote.Started{}, errDown
	}
	return remote.Started{SessionID: req.SessionID, StreamID: req.SessionID, RunID: "r"}, nil
}

func (s *server) Resume(_ context.Context, req remote.ResumeRequest) (remote.Started, error) {
	return remote.Started{SessionID: req.SessionID, StreamID: req.SessionID, RunID: "r"}, nil
}

func (s *server) Stream(context.Context, string, uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		yield(remote.EndEvent{Output: json.RawMessage(`{"counted":3}`)}, nil)
	}
}

func (s *server) Status(_ context.Context, id string) (remote.Status, error) {
	return remote.Status{SessionID: id, Status: remote.StatusRunning}, nil
}
func (*server) Interrupt(context.Context, string, string) error { return nil }
func (*server) Abort(context.Context, string, string) error     { return nil }

// boss asks a remote agent, and one that stays and gets a further message. The second one asks a
// person.
func boss(s *server, more string) []agentloop.Agent {
	approve := agentloop.Tool{Name: "send", RequireApproval: agentloop.AlwaysApprove,
		Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
			s.asked.Add(1)
			return "sent", nil
		}}
	return []agentloop.Agent{
		{
			Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "aide", Mode: agentloop.Blocking}},
			RemoteAgents: []agentloop.RemoteAgent{{Name: "counter", Transport: s, AgentType: "c", Timeout: time.Minute}},
			Model: says{"m", func(_ string, results []string) turn {
				switch len(results) {
				case 0:
					return turn{calls: []call{{"subagent__counter", object{"message": "Count."}}, {"companion__spawnAgent", object{"agent": "aide", "name": "al", "initialMessage": "Send it."}}}}
				case 2:
					return turn{calls: []call{{"companion__sendMessage", object{"name": "al", "message": "And again." + more}}}}
				}
				return turn{text: "It is " + results[0] + " " + results[2]}
			}},
		},
		{Name: "aide", Tools: []agentloop.Tool{approve}, Model: says{"m", func(_ string, results []string) turn {
			if len(results) == 0 {
				return turn{calls: []call{{"send", object{}}}}
			}
			return turn{text: "It is " + results[0]}
		}}},
	}
}

// Agents of other servers are answered from the records; those that stay run as they did, with the
// approvals that they had.
func TestRemoteAndPersistentAgents(t *testing.T) {
	log, real := memory.New(), &server{up: true}
	loop, err := engine.New(log, boss(real, ""), nil)
	require.NoError(t, err)
	defer loop.Stop()
	run1, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "Go."}}})
	require.NoError(t, err)
	for approvals := 0; ; approvals++ {
		r, err := run1.Result(t.Context())
		require.NoError(t, err)
		if r.Suspended == nil {
			require.Equal(t, 2, approvals)
			require.Equal(t, fact.RunCompleted, r.Status)
			break
		}
		_, err = loop.Submit(t.Context(), engine.Submission{SessionID: "s", ToolCallID: r.Suspended.ToolCallIDs[0], Kind: fact.SubmitApproval, Approved: approvals == 0})
		require.NoError(t, err)
		run1, err = run1.Resume(t.Context(), engine.ResumeRequest{})
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, real.asked.Load(), "the server, and one of the two calls")

	c := &cohort.Cohort{Sessions: []cohort.Session{sessionOf(t, log, "s")}}
	down := &server{}
	for range rounds(t, 5) {
		r := run(t, lab.Options{Cohort: c, Candidate: lab.Agents(boss(down, "")...), Baseline: lab.Agents(boss(down, "")...)})
		require.Empty(t, r.Unjudged)
		require.Empty(t, r.Regressions)
		require.Equal(t, result.Same, r.Results[0].Verdict)
	}
	changed := lab.Agents(boss(down, " Please.")...)
	changed[0].Scripted = true
	r := run(t, lab.Options{Cohort: c, Candidate: changed})
	require.Len(t, r.Regressions, 1)
	require.Contains(t, r.Regressions[0].Why, "companion__sendMessage has other arguments: message")
	require.Zero(t, down.asked.Load(), "nothing is really done")
}
