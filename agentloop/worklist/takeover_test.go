package worklist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// twoSteps is an agent whose second answer takes its time, if it hangs.
func twoSteps(hangs bool) agentloop.Agent {
	turns := []scripted.Turn{{ToolCalls: []scripted.Call{{ID: "c", Name: "look"}}}, {Text: "It rains."}}
	quick := scripted.New(turns, nil)
	look := agentloop.NewTool("look", "", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "rain", nil })
	return agentloop.Agent{
		Name: "teller", Tools: []agentloop.Tool{look}, InitialState: json.RawMessage(`{"begun":true}`),
		Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			if last := req.Messages[len(req.Messages)-1]; hangs && last.Role != model.RoleUser {
				if err := emit(model.TextDelta{Text: "It ra"}); err != nil {
					return model.Answer{}, err
				}
				<-ctx.Done()
				return model.Answer{}, ctx.Err()
			}
			return quick.Generate(ctx, req, emit)
		}),
	}
}

// speaks reports whether the second answer is under way.
func speaks(t *projector.Tree) bool {
	return t.Turn != nil && t.Turn.Step != nil && t.Turn.Step.Number == 2 && len(t.Turn.Step.Partial) > 0
}

// A node dies in mid-sentence: another one continues, without anybody's request,
// and what was half said is truncated.
func TestARunOfADeadNodeGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.node("a", twoSteps(true))
	s.node("b", twoSteps(false))
	s.start(a, "s", "teller")
	s.until("s", speaks)
	a.die()
	state := s.until("s", completed)
	require.JSONEq(t, `"It rains."`, string(state.Output))
	require.Equal(t, []string{"a", "b"}, s.claimants("s"))
	require.True(t, s.has("s", "truncated"))
	require.Eventually(t, func() bool { return s.listed() == 0 }, within, 10*time.Millisecond, "it has left the list")
}

// The same with nobody there at first: who starts later finds it.
func TestARunOfADeadNodeGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.node("a", twoSteps(true))
	s.start(a, "s", "teller")
	s.until("s", speaks)
	a.die()
	s.node("a again", twoSteps(false))
	s.until("s", completed)
}

// Of many runs each is taken up once, and those of healthy nodes are left
// alone.
func TestADeadNodesRunsAreShared(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	s := newSite(t)
	a, b := s.node("a", twoSteps(true)), s.node("b", twoSteps(true))
	const each = 10
	for i := range each {
		s.start(a, fmt.Sprint("a", i), "teller")
		s.start(b, fmt.Sprint("b", i), "teller")
	}
	for i := range each {
		s.until(fmt.Sprint("a", i), speaks)
		s.until(fmt.Sprint("b", i), speaks)
	}
	c := s.node("c", twoSteps(true)) // later, or it would have got some of them before
	require.Eventually(t, func() bool { return c.list.Hosted("teller") }, within, time.Millisecond)
	a.die()
	taken := map[string]int{}
	for i := range each {
		session := fmt.Sprint("a", i)
		s.until(session, func(t *projector.Tree) bool { return t.Claim.Node != "a" && speaks(t) })
		claims := s.claimants(session)
		require.Len(t, claims, 2)
		taken[claims[1]]++
		require.Equal(t, []string{"b"}, s.claimants(fmt.Sprint("b", i)), "a healthy run is left alone")
	}
	require.Len(t, taken, 2, "both take their share: %v", taken)
	require.True(t, b.loop.Holds("b0", 0))
	require.False(t, c.loop.Holds("b0", 0))
}

// A request that was appended by a node that died before it drove it, and one
// that was put on the list and never appended.
func TestWhatANodeLeavesBetweenTwoStepsIsFound(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	s := newSite(t)
	b := s.node("b", twoSteps(false))
	_, err := b.list.Announce(t.Context(), "teller", "never")
	require.NoError(t, err)
	entry := func(f fact.Fact) eventlog.Entry {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{Run: "r"})
		require.NoError(t, err)
		return e
	}
	base := fact.Base{SessionID: "s", Timestamp: 1}
	_, err = s.log.Append(t.Context(), "s", 0, []eventlog.Entry{
		entry(&fact.SessionCreated{AgentType: "teller", Base: base}),
		entry(&fact.UserMessage{Content: "go", Base: base}),
		entry(&fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: base}),
	})
	require.NoError(t, err)
	_, err = b.list.Announce(t.Context(), "teller", "s") // after it, or a slow test would look like one that never came
	require.NoError(t, err)
	s.until("s", completed)
	_, err = s.log.Head(t.Context(), "never")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Eventually(t, func() bool { return s.listed() == 0 }, within, 50*time.Millisecond, "also what never came leaves the list")
}

// A run that ends every process that drives it is given up.
func TestAPoisonousRunFails(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newSite(t)
	var nodes []string
	for i := 0; ; i++ {
		name := fmt.Sprint("n", i)
		died := make(chan struct{}, 1)
		deadly := agentloop.Agent{Name: "deadly", Model: modelFunc(
			func(ctx context.Context, _ model.Request, _ func(model.Event) error) (model.Answer, error) {
				select {
				case died <- struct{}{}:
				case <-ctx.Done():
				}
				<-ctx.Done()
				return model.Answer{}, ctx.Err()
			})}
		n := s.node(name, deadly)
		if i == 0 {
			s.start(n, "s", "deadly")
		}
		require.Eventually(t, func() bool { return len(died) > 0 || s.state("s").Error != nil }, within, 10*time.Millisecond,
			"nobody takes it up")
		if len(died) == 0 {
			break
		}
		nodes = append(nodes, name)
		n.die()
	}
	require.Len(t, nodes, agentloop.MaxSilentClaims)
	state := s.state("s")
	require.Equal(t, projector.SessionFailed, state.Status)
	require.Equal(t, agentloop.CodePoisoned, state.Error.Code)
}
