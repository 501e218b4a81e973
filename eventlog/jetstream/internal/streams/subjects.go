package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// SubjectsOf returns the sessions of which a stream has subjects, with the number of
// messages of each.
func (l *Set) SubjectsOf(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	subjects, err := l.Subjects(ctx, stream, filter)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]uint64, len(subjects))
	for subject, messages := range subjects {
		// A subject that belongs to no session was written by another program.
		if id, _, ok := layout.SessionOf(subject); ok {
			ids[id] += messages
		}
	}
	return ids, nil
}

// Subjects returns the subjects of a stream that a filter matches, with the number of
// messages of each.
func (l *Set) Subjects(ctx context.Context, stream, filter string) (subjects map[string]uint64, err error) {
	if l.IsClosed() {
		return nil, eventlog.ErrClosed
	}
	err = l.Step(ctx, "subjects", func(ctx context.Context) (err error) {
		subjects, err = link.Subjects(ctx, l.Conn, stream, filter)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("jetstream: list sessions: %w", err)
	}
	return subjects, nil
}

// LastOf returns a stream's last sequence.
func (l *Set) LastOf(ctx context.Context, stream string) (uint64, error) {
	s, err := l.FindStream(ctx, stream)
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().State.LastSeq, nil
}

// FirstFrom returns the sequence of a subject's first message from seq on, 0 if there is
// none. It asks the leader: removals depend on the answer, and a replica that lags would
// lack the last messages.
func (l *Set) FirstFrom(ctx context.Context, stream, subject string, seq uint64) (uint64, error) {
	m, err := l.LeaderGet(ctx, stream, map[string]any{"seq": seq, "next_by_subj": subject})
	if errors.Is(err, link.ErrNoMessage) {
		return 0, nil
	}
	return m.Sequence, err
}

// Place returns the session's stream and subject.
func (l *Set) Place(session string) (stream, subject string, err error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return "", "", err
	}
	if l.IsClosed() {
		return "", "", eventlog.ErrClosed
	}
	p := l.PartitionOf(session)
	return layout.LogStream(p), layout.LogSubject(session, p), nil
}

// Owns reports whether a stream is the log's.
func (l *Set) Owns(stream string) bool {
	for p := range l.Partitions() {
		if stream == layout.LogStream(p) || stream == layout.SegmentStream(p) {
			return true
		}
	}
	return stream == layout.BlobStream
}
