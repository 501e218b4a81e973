package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// subjectsOf returns the sessions that a stream has subjects of, and how many
// messages each.
func (l *streamSet) subjectsOf(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	if l.isClosed() {
		return nil, eventlog.ErrClosed
	}
	var info *natsjs.StreamInfo
	err := settle(ctx, l.nc, func(ctx context.Context) error {
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

// lastOf returns a stream's last sequence.
func (l *streamSet) lastOf(ctx context.Context, stream string) (uint64, error) {
	var s natsjs.Stream
	err := settle(ctx, l.nc, func(ctx context.Context) error {
		return l.step(ctx, "end", func(ctx context.Context) (err error) {
			s, err = l.js.Stream(ctx, stream)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("jetstream: stream %s: %w", stream, err)
	}
	return s.CachedInfo().State.LastSeq, nil
}

// firstFrom returns the sequence of a subject's first message from seq on, 0
// if there is none. It asks the leader: what is removed depends on it, and a
// replica that lags would not know of the last ones.
func (l *streamSet) firstFrom(ctx context.Context, stream, subject string, seq uint64) (uint64, error) {
	m, err := l.leaderGet(ctx, stream, map[string]any{"seq": seq, "next_by_subj": subject})
	if errors.Is(err, errNoMessage) {
		return 0, nil
	}
	return m.Sequence, err
}

// place returns the session's stream and subject.
func (l *streamSet) place(session string) (stream, subject string, err error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return "", "", err
	}
	if l.isClosed() {
		return "", "", eventlog.ErrClosed
	}
	p := l.partitionOf(session)
	return layout.LogStream(p), layout.LogSubject(session, p), nil
}

// owns reports whether a stream is the log's.
func (l *streamSet) owns(stream string) bool {
	for p := range l.Partitions() {
		if stream == layout.LogStream(p) || stream == layout.SegmentStream(p) {
			return true
		}
	}
	return stream == layout.BlobStream
}

// Sessions implements eventlog.Log. A session that is idle for long may have
// left the log to its segments.
func (l *store) Sessions(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all := map[string]bool{}
		for p := range l.Partitions() {
			for _, place := range []struct{ stream, subjects string }{
				{layout.LogStream(p), layout.LogSubjects}, {layout.SegmentStream(p), layout.SegmentSubjects},
			} {
				some, err := l.subjectsOf(ctx, place.stream, place.subjects+strconv.Itoa(p)+".*")
				if err != nil {
					yield("", err)
					return
				}
				for id := range some {
					is, err := l.stray(ctx, id, p)
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
