package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// paced is a model that says the next piece when the log has the last one:
// every piece is its own append, and nothing is merged.
type paced struct {
	model.Model
	log  eventlog.Log
	dead <-chan struct{} // the log takes nothing any more
	said *int
}

func (p paced) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.dead != nil {
		go func() {
			select {
			case <-p.dead:
				cancel()
			case <-waiting.Done():
			}
		}()
	}
	return p.Model.Generate(ctx, req, func(ev model.Event) error {
		head, err := p.log.Head(ctx, "s")
		if err != nil {
			return err
		}
		if err := emit(ev); err != nil {
			return err
		}
		if p.said != nil {
			*p.said++
		}
		for r, err := range p.log.Follow(waiting, "s", head) {
			if err != nil || r.Type == chunkOf(ev) {
				break
			}
		}
		return nil
	})
}

// chunkOf returns the type of the last chunk that an event becomes.
func chunkOf(ev model.Event) string {
	switch ev.(type) {
	case model.TextDelta:
		return "text_delta"
	case model.ReasoningDelta:
		return "thinking"
	case model.ToolCallStart:
		return "tool_arg_stream_start"
	case model.ToolCallDelta:
		return "tool_arg_stream_delta"
	default:
		return "tool_arg_stream_end"
	}
}

// slow is a log whose appends take their time.
type slow struct {
	eventlog.Log
	each time.Duration
}

func (l slow) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	time.Sleep(l.each)
	return l.Log.Append(ctx, session, expected, entries)
}

func TestASlowLogDoesNotSlowTheModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, pause, each = 500, 10 * time.Millisecond, 200 * time.Millisecond
		var want strings.Builder
		var took time.Duration
		m := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			begin := time.Now()
			for i := range pieces {
				if i > 0 {
					time.Sleep(pause)
				}
				fmt.Fprint(&want, i, " ")
				if err := emit(model.TextDelta{Text: fmt.Sprint(i, " ")}); err != nil {
					return model.Answer{}, err
				}
			}
			took = time.Since(begin)
			return model.Answer{StopReason: fact.StopEndTurn}, nil
		})
		g := newRigOn(t, slow{memory.New(), each}, agentloop.Agent{Name: "a", Model: m})
		g.start("s", "a", "go")
		state := g.ended("s")
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.Equal(t, want.String(), state.Messages[1].Content)
		require.Equal(t, (pieces-1)*pause, took, "the answer is read at the model's pace")
		var text strings.Builder
		records := 0
		for r, err := range g.log.Read(t.Context(), "s", 0, 0) {
			require.NoError(t, err)
			if r.Type == "text_delta" {
				c, err := r.Chunk()
				require.NoError(t, err)
				text.WriteString(c.(*eventlog.TextDelta).Delta)
				records++
			}
		}
		require.Equal(t, want.String(), text.String())
		appends := int(took/each) + 2
		require.InDelta(t, appends, records, 1, "what streams during an append is one record")
	})
}

func TestWhatHasStreamedIsKeptWhenTheLoopStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelFunc(func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			for i := range 10 {
				if err := emit(model.TextDelta{Text: fmt.Sprint(i)}); err != nil {
					return model.Answer{}, err
				}
			}
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		})
		g := newRigOn(t, slow{memory.New(), 200 * time.Millisecond}, agentloop.Agent{Name: "a", Model: m})
		g.start("s", "a", "go")
		time.Sleep(500 * time.Millisecond) // the claim, and half of the first append
		g.loop.Stop()
		state := stateOf(t, g.log, "s")
		require.Equal(t, "0123456789", string(state.Turn.Step.Partial[0].Text))
	})
}

// A request to stop a run takes effect while its model streams continuously to a slow
// log: one append of the run is always under way then.
func TestAStopIsHeardWhileAModelSpeaksToASlowLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 200 * time.Millisecond
		m := modelFunc(func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			for {
				select {
				case <-time.After(7 * time.Millisecond):
				case <-ctx.Done():
					return model.Answer{}, ctx.Err()
				}
				if err := emit(model.TextDelta{Text: "on "}); err != nil {
					return model.Answer{}, err
				}
			}
		})
		g := newRigOn(t, slow{memory.New(), each}, agentloop.Agent{Name: "a", Model: m})
		g.start("s", "a", "go")
		time.Sleep(time.Second + 33*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		require.NoError(t, g.loop.Interrupt(ctx, "s", "enough"))
		require.NoError(t, g.loop.AwaitStop(ctx, "s"))
		require.Equal(t, projector.SessionInterrupted, stateOf(t, g.log, "s").Status)
	})
}

// refusing is a log that takes no record with a certain text in it.
type refusing struct {
	eventlog.Log
	text string
}

func (l refusing) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	for _, e := range entries {
		if e.Kind == eventlog.KindChunk && strings.Contains(string(e.Payload), l.text) {
			return 0, eventlog.ErrTooLarge
		}
	}
	return l.Log.Append(ctx, session, expected, entries)
}

func TestAnAnswerThatTheLogRefusesIsNotRecorded(t *testing.T) {
	for name, pieces := range map[string][]string{
		"the first piece": {"bad", "b", "c"},
		"in the middle":   {"a", "bad", "c"},
		"the last piece":  {"a", "b", "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelFunc(func(_ context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
				for _, text := range pieces {
					if err := emit(model.TextDelta{Text: text}); err != nil {
						return model.Answer{}, err
					}
				}
				return model.Answer{StopReason: fact.StopEndTurn}, nil
			})
			g := newRigOn(t, refusing{memory.New(), "bad"}, agentloop.Agent{Name: "a", Model: m})
			g.start("s", "a", "go")
			state := g.ended("s")
			require.Equal(t, projector.SessionFailed, state.Status)
			require.Equal(t, agentloop.CodeInternal, state.Error.Code)
			require.NotContains(t, g.types("s"), "[model_turn]")
		})
	}
}
