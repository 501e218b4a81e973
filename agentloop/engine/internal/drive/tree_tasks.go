package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
)

// next performs the first of the effects that are appends, or begins those
// that take their time and are not under way. Then it reports false.
func (r *Tree) next(ctx context.Context, effects []decide.Effect) (appended bool, err error) {
	if parked := r.takeParked(); parked != "" {
		return true, r.settled(ctx, r.newTask(ctx, decide.Fail{Session: parked}), errParked)
	}
	for _, e := range effects {
		if e.Key() == "" {
			t := r.newTask(ctx, e)
			return true, r.settled(ctx, t, t.perform(e))
		}
	}
	began := map[string]*task{} // by session, the call that has begun last
	for _, e := range effects {
		if r.tasks[e.Key()] == nil {
			t := r.newTask(ctx, e)
			r.tasks[e.Key()] = t
			if _, call := e.(decide.RunCall); call {
				if last := began[t.session]; last != nil {
					t.after = last.passed
				}
				began[t.session] = t
			}
			r.host.Goroutines.Go(func() {
				err := t.perform(e)
				t.pass()
				t.report(err)
			})
		}
	}
	return false, nil
}

// takeParked returns a session with an open turn of which the fold could not use
// a fact of ours: deciding again would write the same again, for ever.
func (r *Tree) takeParked() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	parked := r.parked
	r.parked = ""
	if s := r.tree.Get(parked); s == nil || s.Turn == nil {
		return ""
	}
	return parked
}

// cancelUnwanted ends what decide does not want to be under way any more.
func (r *Tree) cancelUnwanted(effects []decide.Effect) {
	for key, t := range r.tasks {
		wanted := slices.ContainsFunc(effects, func(e decide.Effect) bool {
			return e.Key() == key && t.of(e)
		})
		if !wanted && t.cancelled == nil {
			t.cancel(errUnwanted)
			t.cancelled = time.AfterFunc(abandonAfter, func() {
				t.abandon()
				t.report(errAbandoned)
			})
		}
	}
}

// abandonAfter is how long something that was cancelled may continue. Then it is
// left alone: what it does is not recorded any more.
const abandonAfter = 2 * time.Second

// settle handles a task that has ended.
func (r *Tree) settle(ctx context.Context, o outcome) error {
	if r.tasks[o.name] != o.task {
		return nil
	}
	r.drop(o.task)
	return r.settled(ctx, o.task, o.err)
}

func (r *Tree) drop(t *task) {
	delete(r.tasks, t.name)
	r.mu.Lock()
	maps.DeleteFunc(r.ids, func(_ string, by *task) bool { return by == t })
	r.mu.Unlock()
	close(t.gone)
	if t.cancelled != nil {
		t.cancelled.Stop()
	}
	t.cancel(nil)
}

// settled judges how something ended that was to be performed.
func (r *Tree) settled(ctx context.Context, t *task, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil, errors.Is(err, eventlog.ErrStale), // it is decided again
		t.cancelled != nil && (errors.Is(err, errUnwanted) || errors.Is(err, errAbandoned)):
		return nil
	case cause != nil:
		return cause
	case !unrecordable(err):
		return err
	}
	t.logger().Error("run failed", "error", err)
	fail := decide.Fail{Session: t.session, Code: agentloop.CodeInternal, Message: "the run failed for an internal reason"}
	err = r.newTask(ctx, fail).perform(fail)
	switch {
	case errors.Is(err, eventlog.ErrStale):
		return nil
	case err != nil && unrecordable(err):
		return fmt.Errorf("%w: %w", ErrStuck, err)
	}
	return err
}

var (
	// ErrHandedOver: this node drains, and another one continues with the tree.
	ErrHandedOver = errors.New("agentloop: handed over to another node")
	// ErrSpread is an ErrHandedOver: the other node is less busy.
	ErrSpread    = fmt.Errorf("%w, which is less busy", ErrHandedOver)
	errParked    = errors.New("agentloop: a record of the run can't be folded")
	ErrPanicked  = errors.New("agentloop: panic")
	ErrStuck     = errors.New("agentloop: not even the run's failure can be recorded")
	errUnwanted  = errors.New("agentloop: not wanted any more")
	errAbandoned = errors.New("agentloop: abandoned")
)

// unrecordable reports an error that would come again however often the work
// is done again: what a model or a tool produced can't be a record.
func unrecordable(err error) bool {
	_, invalid := errors.AsType[*eventlog.ValidationError](err)
	return invalid || errors.Is(err, eventlog.ErrTooLarge) || errors.Is(err, errParked) || errors.Is(err, ErrPanicked)
}

// stopAll ends what is under way and waits for it, but for what does not end.
func (r *Tree) stopAll() {
	r.cancelUnwanted(nil)
	for len(r.tasks) > 0 {
		if o := <-r.ended; r.tasks[o.name] == o.task {
			r.drop(o.task)
		}
	}
}
