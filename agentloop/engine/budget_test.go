package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// redBudget is a quota that gives the tenant red so many tokens a day.
func redBudget(days quota.Days, tokens int64) *quota.Quota {
	return quota.New(quota.Tenants{Named: map[string]quota.Limits{"red": {TokensPerDay: tokens}}}, nil, days)
}

// steps is an agent that calls a tool twice, then says what it has done. Each call uses
// 100 tokens.
func steps() agentloop.Agent {
	use := fact.TokenUsage{Prompt: 60, Completion: 40}
	look := agentloop.NewTool("look", "", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "rain", nil })
	call := []scripted.Call{{Name: "look"}}
	return agentloop.Agent{Name: "teller", Tools: []agentloop.Tool{look}, Model: script(
		scripted.Turn{ToolCalls: call, Usage: use}, scripted.Turn{ToolCalls: call, Usage: use}, scripted.Turn{Text: "It rains.", Usage: use},
	)}
}

func loopOn(t *testing.T, log eventlog.Log, o *engine.Options, agents ...agentloop.Agent) *engine.Loop {
	t.Helper()
	loop, err := engine.New(log, agents, o)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return loop
}

func begin(t *testing.T, l *engine.Loop, session, tenant string) error {
	t.Helper()
	_, err := l.Start(t.Context(), engine.StartRequest{
		SessionID: session, AgentType: "teller", Tenant: tenant, Messages: []agentloop.Input{{Content: "go"}},
	})
	return err
}

// A run whose tenant has spent its budget ends with a record that says so. New runs
// are refused until the next day; then the run can be resumed.
func TestARunStopsWhenItsTenantsBudgetIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, q := memory.New(), redBudget(new(quota.Memory), 350)
		l := loopOn(t, log, &engine.Options{Quota: q}, steps())
		ended := func(session string) engine.Result {
			h, err := l.Handle(t.Context(), session)
			require.NoError(t, err)
			r, err := h.Result(t.Context())
			require.NoError(t, err)
			return r
		}
		require.NoError(t, begin(t, l, "before", "red"))
		require.Equal(t, fact.RunCompleted, ended("before").Status)
		require.NoError(t, begin(t, l, "s", "red"))
		r := ended("s")
		require.Equal(t, fact.RunFailed, r.Status)
		require.Equal(t, agentloop.CodeQuotaExceeded, r.Error.Code)
		require.Contains(t, r.Error.Message, "tokensPerDay is 350")
		var failures, ends []string
		for rec, err := range log.Read(t.Context(), "s", 0, 0) {
			require.NoError(t, err)
			if rec.Kind != eventlog.KindFact {
				continue
			}
			f, err := rec.Fact()
			require.NoError(t, err)
			switch f := f.(type) {
			case *fact.ModelFailed:
				failures = append(failures, f.Code)
			case *fact.RunEnded:
				ends = append(ends, f.ErrorCode)
			}
		}
		require.Equal(t, []string{agentloop.CodeQuotaExceeded}, failures)
		require.Equal(t, []string{agentloop.CodeQuotaExceeded}, ends)
		s, reserved, err := q.Spent(t.Context(), "red")
		require.NoError(t, err)
		require.Equal(t, int64(400), s.Tokens)
		require.Zero(t, reserved)

		retry := engine.ResumeRequest{SessionID: "s", Mode: fact.ModeRetry}
		_, err = l.Resume(t.Context(), retry)
		var refused *quota.Exceeded
		require.ErrorAs(t, err, &refused)
		require.ErrorAs(t, begin(t, l, "more", "red"), &refused)
		_, err = log.Head(t.Context(), "more")
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		require.NoError(t, begin(t, l, "free", ""))
		require.Equal(t, fact.RunCompleted, ended("free").Status)

		time.Sleep(24 * time.Hour)
		_, err = l.Resume(t.Context(), retry)
		require.NoError(t, err)
		require.Equal(t, fact.RunCompleted, ended("s").Status)
	})
}

// A run that only lacks what other calls have reserved repeats its call until they
// are settled.
func TestACallRepeatsWhileOthersMayLeaveEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := redBudget(new(quota.Memory), 10_000)
		let := make(chan struct{})
		l := loopOn(t, memory.New(), &engine.Options{Quota: q}, agentloop.Agent{Name: "teller", Model: saysWhen("done", let), MaxRetries: 20})
		for _, id := range []string{"a", "b", "c"} { // each may say likelyAnswer tokens
			require.NoError(t, begin(t, l, id, "red"))
		}
		synctest.Wait()
		_, reserved, err := q.Spent(t.Context(), "red")
		require.NoError(t, err)
		require.Less(t, reserved.Tokens, int64(10_000))
		close(let)
		for _, id := range []string{"a", "b", "c"} {
			h, err := l.Handle(t.Context(), id)
			require.NoError(t, err)
			r, err := h.Result(t.Context())
			require.NoError(t, err)
			require.Equal(t, fact.RunCompleted, r.Status)
		}
		s, reserved, err := q.Spent(t.Context(), "red")
		require.NoError(t, err)
		require.Zero(t, reserved)
		require.Positive(t, s.Tokens, "estimated: the model counts nothing")
	})
}

// What a call has used that has failed, or was stopped, is estimated.
func TestCallsWithoutAnAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		says  string
		err   error
		spent bool
	}{
		"refused": {"", &model.Error{Code: model.CodeOverloaded}, false},
		"cut":     {"Half a sentence", &model.Error{Code: model.CodeUnavailable}, true},
		"panic":   {"Half a sentence", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			q := redBudget(new(quota.Memory), 10_000)
			m := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
				if test.says != "" {
					if err := emit(model.TextDelta{Text: test.says}); err != nil {
						return model.Answer{}, err
					}
				}
				if test.err == nil {
					panic("the adapter is broken")
				}
				return model.Answer{}, test.err
			})
			l := loopOn(t, memory.New(), &engine.Options{Quota: q}, agentloop.Agent{Name: "teller", Model: m, MaxRetries: -1})
			require.NoError(t, begin(t, l, "s", "red"))
			h, err := l.Handle(t.Context(), "s")
			require.NoError(t, err)
			_, err = h.Result(t.Context())
			require.NoError(t, err)
			s, reserved, err := q.Spent(t.Context(), "red")
			require.NoError(t, err)
			require.Zero(t, reserved)
			require.Equal(t, test.spent, s.Tokens > 0)
			require.Less(t, s.Tokens, int64(100))
		})
	}
}

// mortalDays are out of reach after a number of changes, as the log is then: their
// process has died. With lastSaved the fatal change is saved.
type mortalDays struct {
	quota.Days
	left      atomic.Int64
	lastSaved bool
	log       *mortal
}

func (m *mortalDays) Load(ctx context.Context, key string) ([]byte, uint64, error) {
	if m.left.Load() < 0 {
		return nil, 0, eventlog.ErrClosed
	}
	return m.Days.Load(ctx, key)
}

func (m *mortalDays) Save(ctx context.Context, key string, value []byte, revision uint64) (bool, error) {
	left := m.left.Add(-1)
	if left >= 0 {
		return m.Days.Save(ctx, key, value, revision)
	}
	if left == -1 && m.lastSaved {
		_, _ = m.Days.Save(ctx, key, value, revision)
	}
	m.log.left.Store(-1) // and its fatal append is not stored
	m.log.once.Do(func() { close(m.log.dead) })
	return false, eventlog.ErrClosed
}

// A process dies when it changes a day: between the reservation and the call, or
// between the answer and its record. Another one continues the run. Each call that
// was made counts, and what is recorded counts once.
func TestABudgetSurvivesDeathAtAnyChange(t *testing.T) {
	for after := range 6 { // three calls are reserved and settled
		for _, saved := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %d, saved %v", after, saved), func(t *testing.T) {
				store, days := memory.New(), new(quota.Memory)
				log := &mortal{Log: store, dead: make(chan struct{})}
				log.left.Store(1 << 30)
				dying := &mortalDays{Days: days, lastSaved: saved, log: log}
				dying.left.Store(int64(after))
				first := loopOn(t, log, &engine.Options{Quota: redBudget(dying, 1_000_000)}, steps())
				require.NoError(t, begin(t, first, "s", "red"))
				<-log.dead
				first.Stop()
				q := redBudget(days, 1_000_000)
				_, left, err := q.Spent(t.Context(), "red")
				require.NoError(t, err)

				second := loopOn(t, store, &engine.Options{Quota: q}, steps())
				_, err = second.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
				require.NoError(t, err)
				h, err := second.Handle(t.Context(), "s")
				require.NoError(t, err)
				_, err = h.Result(t.Context())
				require.NoError(t, err)
				s, reserved, err := q.Spent(t.Context(), "red")
				require.NoError(t, err)
				require.Zero(t, reserved)
				want := int64(300) + left.Tokens // of a call that may have been made
				if saved && after%2 == 1 {
					want += 100 // of one that was made and not recorded
				}
				require.Equal(t, want, s.Tokens)
				require.Equal(t, !saved && after%2 == 1 || saved && after%2 == 0, left.Tokens > 0)
			})
		}
	}
}
