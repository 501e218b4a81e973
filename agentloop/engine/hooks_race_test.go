package engine_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// racing is a log in which two requests for a run meet: the first one is appended when the
// second one wants to be, and the second one when it may.
type racing struct {
	eventlog.Log
	armed     atomic.Bool
	requests  atomic.Int32
	both, may chan struct{}
}

func (l *racing) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	requested := func(e eventlog.Entry) bool { return e.Type == "run_requested" }
	if l.armed.Load() && slices.ContainsFunc(entries, requested) {
		switch l.requests.Add(1) {
		case 1:
			<-l.both
		case 2:
			close(l.both)
			<-l.may
		}
	}
	return l.Log.Append(ctx, session, expected, entries)
}

// Of two requests with hooks that come at once, the log takes one: its hooks are notified of
// its run, and nothing is left of either.
func TestHooksOfRequestsThatMeet(t *testing.T) {
	messages := func(text string) []agentloop.Input { return []agentloop.Input{{Content: text}} }
	for name, c := range map[string]struct {
		before  string // the first message of the session, if it exists
		request func(ctx context.Context, l *engine.Loop, text string, h *agentloop.Hooks) error
	}{
		"execute": {"", func(ctx context.Context, l *engine.Loop, text string, h *agentloop.Hooks) error {
			_, err := l.Execute(ctx, engine.StartRequest{SessionID: "s", AgentType: "a", Messages: messages(text), Hooks: h})
			return err
		}},
		"message": {"hello", func(ctx context.Context, l *engine.Loop, text string, h *agentloop.Hooks) error {
			_, err := l.SendMessage(ctx, engine.MessageRequest{SessionID: "s", Messages: messages(text), Hooks: h})
			return err
		}},
		"resume": {"ask", func(ctx context.Context, l *engine.Loop, text string, h *agentloop.Hooks) error {
			_, err := l.Resume(ctx, engine.ResumeRequest{SessionID: "s", Messages: messages(text), Hooks: h})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := make(chan struct{})
			log := &racing{Log: memory.New(), both: make(chan struct{}), may: make(chan struct{})}
			g := newRigOn(t, log, agentloop.Agent{
				Name: "a", Tools: []agentloop.Tool{{Name: "ask", Client: true}},
				Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
					turn := done
					switch said := req.Messages[len(req.Messages)-1].Content; {
					case said == "ask":
						turn = call("ask", `{}`)
					case strings.HasPrefix(said, "race"):
						<-answers
					}
					return scripted.New([]scripted.Turn{turn}, nil).Generate(ctx, model.Request{}, emit)
				}),
			})
			if c.before != "" {
				g.start("s", "a", c.before)
				g.comes("s", func(t *projector.Tree) bool { return t.Over() || t.Suspended() })
				released(t, g.loop)
			}
			log.armed.Store(true)
			o := newTold()
			request := func(who string) (weak.Pointer[agentloop.Hooks], error) {
				hooks := o.hooks(who + ": ")
				return weak.Make(hooks), c.request(t.Context(), g.loop, "race "+who, hooks)
			}
			var winner weak.Pointer[agentloop.Hooks]
			won := make(chan error, 1)
			go func() {
				var err error
				winner, err = request("winner")
				won <- err
				close(log.may)
			}()
			require.Eventually(t, func() bool { return log.requests.Load() == 1 }, time.Minute, time.Millisecond)
			loser, err := request("loser")
			require.ErrorIs(t, err, agentloop.ErrAlreadyRunning)
			require.NoError(t, <-won)
			close(answers)
			require.NotContains(t, strings.Join(o.until(t, `winner: complete "ok"`), "\n"), "loser")

			released(t, g.loop)
			require.Eventually(t, func() bool {
				runtime.GC()
				return winner.Value() == nil && loser.Value() == nil
			}, time.Minute, time.Millisecond)
		})
	}
}
