package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// runner drives one tree while it holds the claim.
type runner struct {
	l       *Loop
	def     *definition
	session string
	w       *eventlog.Writer

	mu   sync.RWMutex // guards tree; the writer's observer changes it
	tree *projector.Tree

	// committing is held from reading the state to appending what was made
	// of it, so that the patches of parallel calls build on each other.
	committing sync.Mutex
}

// hold claims the session's tree and drives it until nothing is left to
// decide.
func (l *Loop) hold(ctx context.Context, session string) error {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return err
	}
	if t.Turn == nil || t.Status != projector.SessionActive {
		return nil
	}
	r := &runner{l: l, session: session, tree: t, def: l.agents[t.AgentType]}
	if r.def == nil {
		return fmt.Errorf("%w: %q", ErrUnknownAgent, t.AgentType)
	}
	r.w = eventlog.NewWriter(l.log, session, eventlog.WriterOptions{
		ID: l.opts.NewID(), Head: t.Head, Status: t.StreamStatus, Observe: r.observe,
	})
	attempt := 1
	if run := t.CurrentRun(); run != nil {
		attempt += run.Claims
	}
	err = r.w.Claim(ctx, &eventlog.RunClaimed{
		RunID: t.Turn.RunID, Node: l.opts.Node, Attempt: attempt, FactBase: l.factBase(session),
	})
	if err != nil {
		return err
	}
	return r.drive(ctx)
}

func (r *runner) observe(rec eventlog.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	projector.Apply(r.tree, rec)
}

// drive decides and performs until nothing is left.
func (r *runner) drive(ctx context.Context) error {
	d := decider{def: r.def, retryDelay: r.l.opts.RetryDelay}
	for {
		r.mu.RLock()
		effects := d.decide(r.tree)
		r.mu.RUnlock()
		if len(effects) == 0 {
			return nil
		}
		if err := r.performAll(ctx, effects); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if !unrecordable(err) {
				return err
			}
			if err := r.fail(ctx, Fail{Code: CodeInternal, Message: "the run could not be recorded"}); err != nil {
				return err
			}
			r.l.opts.Logger.Error("run failed", "session", r.session, "error", err)
		}
	}
}

// unrecordable reports an error that would come again however often the work
// is done anew: what a model or a tool produced can't be a record.
func unrecordable(err error) bool {
	_, invalid := errors.AsType[*eventlog.ValidationError](err)
	return invalid || errors.Is(err, eventlog.ErrTooLarge)
}

// performAll performs effects at the same time and waits for all.
func (r *runner) performAll(ctx context.Context, effects []Effect) error {
	if len(effects) == 1 {
		return r.perform(ctx, effects[0])
	}
	errs := make([]error, len(effects))
	var wg sync.WaitGroup
	for i, e := range effects {
		wg.Go(func() { errs[i] = r.perform(ctx, e) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *runner) perform(ctx context.Context, e Effect) error {
	switch e := e.(type) {
	case Truncate:
		return r.truncate(ctx, e)
	case CallModel:
		return r.callModel(ctx, e)
	case RunCall:
		return r.runCall(ctx, e)
	case CommitStep:
		return r.commitStep(ctx, e)
	case Remind:
		return r.append(ctx, fact{run: r.runID(), f: &eventlog.UserMessage{
			Content: e.Text, Metadata: json.RawMessage(`{"hidden":true}`), FactBase: r.l.factBase(r.session),
		}})
	case Finish:
		return r.finish(ctx, e)
	case Fail:
		return r.fail(ctx, e)
	default:
		panic(fmt.Sprintf("agentloop: effect %T", e))
	}
}

// appendTimeout bounds an append that the run's end has overtaken: what was
// done is still recorded.
const appendTimeout = 10 * time.Second

// append appends facts, all or none. It outlives the run's context for a
// while: an append that is given up has an unknown outcome.
func (r *runner) append(ctx context.Context, facts ...fact) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	entries, err := entriesOf(r.session, facts)
	if err != nil {
		return err
	}
	return r.w.Append(ctx, entries...)
}

// chunk labels a chunk of the current run.
func (r *runner) chunk(c eventlog.Chunk) fact { return fact{c: c, run: r.runID()} }

func (r *runner) base(step int) eventlog.Base {
	return eventlog.Base{AgentID: r.session, AgentType: r.def.Name, Timestamp: r.l.now(), Step: step}
}

func (r *runner) runID() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.tree.Turn == nil {
		return ""
	}
	return r.tree.Turn.RunID
}

func (r *runner) customState() json.RawMessage {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tree.CustomState
}
