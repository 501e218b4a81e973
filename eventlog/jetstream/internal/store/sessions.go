package store

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Sessions implements eventlog.Log. After a purge only segments may have an idle session.
func (l *Store) Sessions(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all := map[string]bool{}
		for p := range l.Partitions() {
			for _, place := range []struct{ stream, subjects string }{
				{layout.LogStream(p), layout.LogSubjects}, {layout.SegmentStream(p), layout.SegmentSubjects},
			} {
				some, err := l.SubjectsOf(ctx, place.stream, place.subjects+strconv.Itoa(p)+".*")
				if err != nil {
					yield("", err)
					return
				}
				for id := range some {
					is, err := l.Stray(ctx, id, p)
					if err != nil {
						yield("", err)
						return
					}
					if !is {
						all[id] = true
					}
				}
			}
		}
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if !yield(id, nil) {
				return
			}
		}
	}
}
