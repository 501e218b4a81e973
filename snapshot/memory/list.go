package memory

import (
	"context"
	"slices"

	"github.com/helixd/helixd/snapshot"
)

// Sequences implements snapshot.Lister.
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
