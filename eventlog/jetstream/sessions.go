package jetstream

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Sessions implements eventlog.Log. A session that is idle for long may have
// left the log to its segments.
func (l *Log) Sessions(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all := map[string]uint64{}
		for p := range l.opts.Partitions {
			for _, place := range []struct{ stream, subjects string }{
				{layout.LogStream(p), layout.LogSubjects}, {layout.SegmentStream(p), layout.SegmentSubjects},
			} {
				some, err := l.subjectsOf(ctx, place.stream, place.subjects+strconv.Itoa(p)+".*")
				if err != nil {
					yield("", err)
					return
				}
				maps.Copy(all, some)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(all)) {
			if !yield(id, nil) {
				return
			}
		}
	}
}

// subjectsOf returns the sessions that a stream has subjects of, and how many
// messages each.
func (l *Log) subjectsOf(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	if l.isClosed() {
		return nil, eventlog.ErrClosed
	}
	var info *natsjs.StreamInfo
	err := Settle(ctx, l.nc, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		return l.step(ctx, "subjects", func(ctx context.Context) error {
			info, err = s.Info(ctx, natsjs.WithSubjectFilter(filter))
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: list sessions: %w", err)
	}
	ids := make(map[string]uint64, len(info.State.Subjects))
	for subject, messages := range info.State.Subjects {
		// A subject that no session has was written by somebody else.
		if id, _, ok := layout.SessionOf(subject); ok {
			ids[id] += messages
		}
	}
	return ids, nil
}
