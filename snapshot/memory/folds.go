// Package memory keeps saved folds in memory, for tests.
package memory

import (
	"context"
	"slices"
	"sync"

	"github.com/helixd/helixd/snapshot"
)

// Folds implements snapshot.Folds. The zero value is empty.
type Folds struct {
	mu    sync.Mutex
	saved map[string][]snapshot.Saved
}

// Nearest implements snapshot.Folds.
func (f *Folds) Nearest(_ context.Context, session string, n uint64, forms ...snapshot.Form) (*snapshot.Saved, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var best *snapshot.Saved
	for _, form := range forms {
		for _, s := range f.saved[session] {
			if s.Form == form && s.Sequence <= n && (best == nil || s.Sequence > best.Sequence) {
				best = &s
			}
		}
	}
	return best, nil
}

// Save implements snapshot.Folds.
func (f *Folds) Save(_ context.Context, session string, s snapshot.Saved) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.saved == nil {
		f.saved = map[string][]snapshot.Saved{}
	}
	s.State, s.Own = slices.Clone(s.State), len(s.State)
	f.saved[session] = append(slices.DeleteFunc(f.saved[session], func(o snapshot.Saved) bool {
		return o.Sequence == s.Sequence && o.Form == s.Form
	}), s)
	return s.Own, nil
}

// Erase implements snapshot.Folds.
func (f *Folds) Erase(_ context.Context, session string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.saved, session)
	return nil
}

// Sequences implements snapshot.Folds.
func (f *Folds) Sequences(_ context.Context, session string, forms ...snapshot.Form) ([]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []uint64
	for _, s := range f.saved[session] {
		if slices.Contains(forms, s.Form) {
			all = append(all, s.Sequence)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
