package memory

import (
	"context"
	"slices"
)

// Sequences implements snapshot.Lister.
func (f *Folds) Sequences(_ context.Context, session string) ([]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []uint64
	for _, s := range f.saved[session] {
		all = append(all, s.Sequence)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
