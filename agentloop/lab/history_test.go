package lab_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// guide looks things up and answers. Asked to "think", it does not answer until it is stopped, and
// says so on a channel.
func guide(thinks chan<- struct{}) agentloop.Agent {
	answers := says{"m", func(request string, results []string) turn {
		if len(results) == 0 {
			return turn{calls: []call{{"find", object{"about": request}}}}
		}
		return turn{text: "I found it: " + request}
	}}
	return agentloop.Agent{
		Name:  "guide",
		Model: hesitant{answers, thinks},
		Tools: []agentloop.Tool{{
			Name: "find", InputSchema: json.RawMessage(`{"type":"object"}`),
			Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return "a page", nil },
		}},
	}
}

type hesitant struct {
	says
	thinks chan<- struct{}
}

func (h hesitant) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	last := req.Messages[len(req.Messages)-1]
	for _, m := range req.Messages {
		if m.Role == model.RoleUser {
			last.Content = m.Content
		}
	}
	if last.Role == model.RoleTool && strings.Contains(last.Content, "think") && h.thinks != nil {
		select {
		case h.thinks <- struct{}{}:
			<-ctx.Done()
		case <-ctx.Done():
		}
		return model.Answer{}, context.Cause(ctx)
	}
	return h.says.Generate(ctx, req, emit)
}

// history is a log whose sessions people take back, fork and stop.
type history struct {
	*testing.T
	log    *memory.Log
	loop   *engine.Loop
	thinks chan struct{}
}

func newHistory(t *testing.T) *history {
	h := &history{T: t, log: memory.New(), thinks: make(chan struct{})}
	var err error
	h.loop, err = engine.New(h.log, []agentloop.Agent{guide(h.thinks)}, nil)
	require.NoError(t, err)
	t.Cleanup(h.loop.Stop)
	return h
}

// say has the agent answer a message.
func (h *history) say(session, text string) {
	h.Helper()
	_, err := h.loop.Execute(h.Context(), engine.StartRequest{SessionID: session, AgentType: "guide", Messages: []agentloop.Input{{Content: text}}})
	require.NoError(h, err)
	h.ends(session)
}

// ends waits until a run has ended.
func (h *history) ends(session string) {
	h.Helper()
	run, err := h.loop.Handle(h.Context(), session)
	require.NoError(h, err)
	_, err = run.Result(h.Context())
	require.NoError(h, err)
}

// stops has the agent begin to think, and stops it.
func (h *history) stops(session string, stop func(ctx context.Context, session, reason string) error) {
	h.Helper()
	_, err := h.loop.Execute(h.Context(), engine.StartRequest{SessionID: session, AgentType: "guide", Messages: []agentloop.Input{{Content: "think"}}})
	require.NoError(h, err)
	<-h.thinks
	require.NoError(h, stop(h.Context(), session, "enough"))
	require.NoError(h, h.loop.AwaitStop(h.Context(), session))
}

// goesOn has a stopped run continue on another node, on which nothing is left to think about.
// The first one ends before: either of them could take the run.
func (h *history) goesOn(session string, mode fact.RunMode) {
	h.Helper()
	h.loop.Stop()
	calm, err := engine.New(h.log, []agentloop.Agent{guide(nil)}, nil)
	require.NoError(h, err)
	h.Cleanup(calm.Stop)
	h.loop = calm
	_, err = calm.Resume(h.Context(), engine.ResumeRequest{SessionID: session, Mode: mode})
	require.NoError(h, err)
	h.ends(session)
}

func (h *history) head(session string) uint64 {
	h.Helper()
	head, err := h.log.Head(h.Context(), session)
	require.NoError(h, err)
	return head
}

// back takes a session back to a record.
func (h *history) back(session string, at uint64) {
	h.Helper()
	_, err := h.loop.TimeTravel.Rollback(h.Context(), session, timetravel.Target{Sequence: at})
	require.NoError(h, err)
}

// turned is the first record at which an agent's model has answered.
func (h *history) turned(session string) uint64 {
	h.Helper()
	for r, err := range h.log.Read(h.Context(), session, 0, 0) {
		require.NoError(h, err)
		if f, err := r.Fact(); err == nil {
			if _, is := f.(*fact.ToolResult); is {
				return r.Sequence
			}
		}
	}
	h.Fatal("no result")
	return 0
}

// Sessions that people took back, forked or stopped are judged by what counts of them.
func TestSessionsWithAHistory(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(h *history)
		outcome string
		why     string // for which it is not judged
	}{
		"a turn is taken back": {func(h *history) {
			h.say("s", "one")
			at := h.head("s")
			h.say("s", "two")
			h.back("s", at)
			h.say("s", "three")
		}, "completed", ""},
		"a run goes back to its middle": {func(h *history) {
			h.say("s", "one")
			h.back("s", h.turned("s"))
			_, err := h.loop.Resume(h.Context(), engine.ResumeRequest{SessionID: "s"})
			require.NoError(h, err)
			h.ends("s")
		}, "completed", ""},
		"a run is retried": {func(h *history) {
			h.say("s", "one")
			_, err := h.loop.Resume(h.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeRetry})
			require.NoError(h, err)
			h.ends("s")
		}, "completed", ""},
		"a fork goes on": {func(h *history) {
			h.say("from", "one")
			_, err := h.loop.TimeTravel.Fork(h.Context(), timetravel.ForkRequest{FromSessionID: "from", NewSessionID: "s"})
			require.NoError(h, err)
			h.say("s", "two")
			h.say("s", "three")
		}, "completed", ""},
		"the last run is interrupted": {func(h *history) {
			h.say("s", "one")
			h.stops("s", h.loop.Interrupt)
		}, "interrupted", ""},
		"the last run is aborted": {func(h *history) {
			h.say("s", "one")
			h.stops("s", h.loop.Abort)
		}, "failed (aborted)", ""},
		"an interrupted run goes on": {func(h *history) {
			h.stops("s", h.loop.Interrupt)
			h.goesOn("s", fact.ModeContinue)
		}, "completed", ""},
		"an aborted run is retried": {func(h *history) {
			h.stops("s", h.loop.Abort)
			h.goesOn("s", fact.ModeRetry)
		}, "completed", ""},
		"a stopped run is taken back": {func(h *history) {
			h.say("s", "one")
			at := h.head("s")
			h.stops("s", h.loop.Interrupt)
			h.back("s", at)
			h.say("s", "two")
		}, "completed", ""},
		"all is taken back": {func(h *history) {
			h.say("s", "one")
			h.back("s", 1)
			h.say("s", "two")
		}, "completed", ""},
		"a fork is taken back": {func(h *history) {
			h.say("from", "one")
			_, err := h.loop.TimeTravel.Fork(h.Context(), timetravel.ForkRequest{FromSessionID: "from", NewSessionID: "s"})
			require.NoError(h, err)
			at := h.head("s")
			h.say("s", "two")
			h.back("s", at)
			h.say("s", "three")
		}, "completed", ""},
		"a fork of the middle of a run": {func(h *history) {
			h.say("from", "one")
			_, err := h.loop.TimeTravel.Fork(h.Context(), timetravel.ForkRequest{FromSessionID: "from", NewSessionID: "s", At: timetravel.Target{Sequence: h.turned("from")}})
			require.NoError(h, err)
			_, err = h.loop.Resume(h.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeWithMessage, Messages: []agentloop.Input{{Content: "two"}}})
			require.NoError(h, err)
			h.ends("s")
		}, "completed", ""},
		"a fork of a fork": {func(h *history) {
			h.say("from", "one")
			_, err := h.loop.TimeTravel.Fork(h.Context(), timetravel.ForkRequest{FromSessionID: "from", NewSessionID: "between"})
			require.NoError(h, err)
			h.say("between", "two")
			_, err = h.loop.TimeTravel.Fork(h.Context(), timetravel.ForkRequest{FromSessionID: "between", NewSessionID: "s"})
			require.NoError(h, err)
			h.say("s", "three")
		}, "completed", ""},
		"an interrupted run gets a message": {func(h *history) {
			h.stops("s", h.loop.Interrupt)
			_, err := h.loop.Resume(h.Context(), engine.ResumeRequest{SessionID: "s", Mode: fact.ModeWithMessage, Messages: []agentloop.Input{{Content: "two"}}})
			require.NoError(h, err)
			h.ends("s")
		}, "", "stopped"},
		"a fork that nobody wrote to": {func(h *history) {
			h.say("from", "one")
			_, err := h.loop.TimeTravel.Fork(h.Context(), timetravel.ForkRequest{FromSessionID: "from", NewSessionID: "s"})
			require.NoError(h, err)
		}, "", "no message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHistory(t)
			c.happens(h)
			recorded := &cohort.Cohort{Sessions: []cohort.Session{sessionOf(t, h.log, "s")}}
			same := lab.Agents(guide(nil))
			for _, baseline := range [][]lab.Agent{nil, same} {
				r := run(t, lab.Options{Cohort: recorded, Candidate: same, Baseline: baseline})
				if c.why != "" {
					require.Equal(t, result.Unjudged, r.Results[0].Verdict)
					require.Contains(t, r.Unjudged[0].Why, c.why)
					continue
				}
				require.Equal(t, result.Same, r.Results[0].Verdict, "%+v", r.Results[0].Difference)
				require.Equal(t, c.outcome, r.Results[0].Candidate.Outcome)
				require.Equal(t, 0, r.ExitCode())
			}
			if c.why != "" {
				return
			}
			other := guide(nil)
			other.Tools[0].RequireApproval = agentloop.AlwaysApprove
			r := run(t, lab.Options{Cohort: recorded, Candidate: lab.Agents(other), Baseline: same})
			require.Equal(t, result.Regression, r.Results[0].Verdict)
			require.Equal(t, result.Approval, r.Results[0].Difference.Kind)
		})
	}
}
