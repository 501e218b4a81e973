package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
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
	id      string // of the writer
	w       *eventlog.Writer

	mu     sync.RWMutex // guards tree and parked; the writer's observer changes them
	tree   *projector.Tree
	parked bool // the fold could not use a record of ours

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
	r := &runner{l: l, session: session, id: l.opts.NewID(), tree: t, def: l.agents[t.AgentType]}
	if r.def == nil {
		return fmt.Errorf("%w: %q", ErrUnknownAgent, t.AgentType)
	}
	r.w = eventlog.NewWriter(l.log, session, eventlog.WriterOptions{
		ID: r.id, Head: t.Head, Status: t.StreamStatus, Observe: r.observe,
	})
	defer r.w.Stop()
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
	parked := len(r.tree.Parked)
	projector.Apply(r.tree, rec)
	r.parked = r.parked || rec.Writer == r.id && len(r.tree.Parked) > parked
}

// drive decides and performs until nothing is left.
func (r *runner) drive(ctx context.Context) error {
	d := decider{def: r.def, retryDelay: r.l.opts.RetryDelay}
	for {
		err := r.flush(ctx) // decide sees all that was written
		if err == nil {
			r.mu.RLock()
			effects, parked := d.decide(r.tree), r.parked
			r.mu.RUnlock()
			if len(effects) == 0 {
				return nil
			}
			if parked { // deciding anew would do the same again, for ever
				err = errParked
			} else {
				err = r.performAll(ctx, effects)
			}
		}
		if err == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if !unrecordable(err) {
			return err
		}
		r.l.opts.Logger.Error("run failed", "session", r.session, "error", err)
		if err := r.fail(ctx, Fail{Code: CodeInternal, Message: "the run failed for an internal reason"}); err != nil {
			return err
		}
	}
}

var (
	errParked   = errors.New("agentloop: a record of the run can't be folded")
	errPanicked = errors.New("agentloop: panic")
)

// unrecordable reports an error that would come again however often the work
// is done anew: what a model or a tool produced can't be a record.
func unrecordable(err error) bool {
	_, invalid := errors.AsType[*eventlog.ValidationError](err)
	return invalid || errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, errParked) || errors.Is(err, errPanicked)
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

// perform performs one effect. A panic in a tool's or a model's code is the
// run's failure, not the process's.
func (r *runner) perform(ctx context.Context, e Effect) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanicked, p, debug.Stack())
		}
	}()
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
			Content: e.Text, Metadata: json.RawMessage(projector.ReminderMetadata), FactBase: r.l.factBase(r.session),
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
	entries, err := entriesOf(r.session, facts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	return r.w.Append(ctx, entries...)
}

// write queues facts, all or none; a log that has fallen so far behind that
// there is no room is waited for. What becomes of them flush tells.
func (r *runner) write(ctx context.Context, facts ...fact) error {
	entries, err := entriesOf(r.session, facts)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	return r.w.Write(ctx, entries...)
}

// flush waits until all that was written is durable and folded. Like append,
// it outlives the run's context.
func (r *runner) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
	defer cancel()
	return r.w.Flush(ctx)
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
