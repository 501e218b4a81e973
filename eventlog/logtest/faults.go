package logtest

import (
	"context"
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
}

// Fault is what happens to one append.
type Fault int

// The faults.
const (
	NoFault     Fault = iota
	LostAnswer        // it is stored, and nobody hears of it
	LostRequest       // it is not stored, and nobody hears of it
	Duplicate         // it arrives twice
)

// Next sets the faults of the next appends, in order.
func (f *Faulty) Next(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

// Append implements eventlog.Log.
func (f *Faulty) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	f.mu.Lock()
	fault := NoFault
	if len(f.faults) > 0 {
		fault, f.faults = f.faults[0], f.faults[1:]
	}
	f.mu.Unlock()
	if fault != NoFault && f.OnFault != nil {
		f.OnFault()
	}
	switch fault {
	case LostRequest:
		return 0, eventlog.ErrOutcomeUnknown
	case LostAnswer:
		if _, err := f.Log.Append(ctx, session, expected, entries); err != nil {
			return 0, err
		}
		return 0, eventlog.ErrOutcomeUnknown
	case Duplicate:
		if _, err := f.Log.Append(ctx, session, expected, entries); err != nil {
			return 0, err
		}
	}
	return f.Log.Append(ctx, session, expected, entries)
}
