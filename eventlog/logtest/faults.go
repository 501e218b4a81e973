package logtest

import (
	"context"
	"slices"
	"sync"

	"github.com/helixd/helixd/eventlog"
)

// Faulty decorates a log with faults of appends.
type Faulty struct {
	eventlog.Log
	// OnFault, if set, is called when a fault happens.
	OnFault func()

	mu     sync.Mutex
	faults []Fault
	held   []request
}

// Fault is what happens to one append.
type Fault int

// The faults.
const (
	NoFault     Fault = iota
	LostAnswer        // it is stored, and the answer is lost
	LostRequest       // it is not stored, and there is no answer
	Duplicate         // it arrives twice
	Delay             // it is not answered, and arrives when another append has been made, or at Release
	Reordered         // it is not answered, and arrives when its own retry has been made, or at Release
	faultKinds  = iota
)

// request is an append that is still under way.
type request struct {
	session   string
	expected  uint64
	entries   []eventlog.Entry
	reordered bool
}

// is reports whether r is a try of the same append.
func (r request) is(session string, entries []eventlog.Entry) bool {
	e, f := r.entries[0], entries[0]
	return r.session == session && e.Writer == f.Writer && e.Ordinal == f.Ordinal
}

// Next sets the faults of the next appends, in order.
func (f *Faulty) Next(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

// Release lets what is held arrive now, and returns how many of them the log
// has taken.
func (f *Faulty) Release(ctx context.Context) int {
	return f.deliver(ctx, func(request) bool { return true })
}

// deliver makes the held appends that are due.
func (f *Faulty) deliver(ctx context.Context, due func(request) bool) (stored int) {
	f.mu.Lock()
	var arriving []request
	f.held = slices.DeleteFunc(f.held, func(r request) bool {
		if due(r) {
			arriving = append(arriving, r)
			return true
		}
		return false
	})
	f.mu.Unlock()
	for _, r := range arriving {
		if _, err := f.Log.Append(context.WithoutCancel(ctx), r.session, r.expected, r.entries); err == nil {
			stored++
		}
	}
	return stored
}

// Append implements eventlog.Log.
func (f *Faulty) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	f.mu.Lock()
	fault := NoFault
	if len(f.faults) > 0 {
		fault, f.faults = f.faults[0], f.faults[1:]
	}
	if fault == Delay || fault == Reordered {
		f.held = append(f.held, request{session, expected, slices.Clone(entries), fault == Reordered})
	}
	f.mu.Unlock()
	switch fault {
	case LostRequest, Delay, Reordered:
		f.happened()
		return 0, eventlog.ErrOutcomeUnknown
	case Duplicate:
		if _, err := f.Log.Append(ctx, session, expected, entries); err != nil {
			return 0, err
		}
		f.happened()
		ctx = context.WithoutCancel(ctx) // the other one is under way, even if no caller waits
	}
	last, err := f.Log.Append(ctx, session, expected, entries)
	f.deliver(ctx, func(r request) bool { return r.reordered == r.is(session, entries) })
	if fault == LostAnswer && err == nil {
		f.happened()
		return 0, eventlog.ErrOutcomeUnknown
	}
	return last, err
}

func (f *Faulty) happened() {
	if f.OnFault != nil {
		f.OnFault()
	}
}
