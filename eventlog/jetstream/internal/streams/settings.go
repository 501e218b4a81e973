package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// checkStream returns an error if l can't rely on a stream.
func (l *Set) checkStream(s *natsjs.StreamInfo, want natsjs.StreamConfig) error {
	l.found = append(l.found, s)
	if l.Opts.ReadOnly {
		return nil
	}
	return CheckSettings(s.Config, want)
}

// Judge checks all streams together: which servers have them, and which durability that
// gives. It reports whether some records may be only in segments.
func (l *Set) Judge(ctx context.Context) (purged bool, err error) {
	if !l.Opts.ReadOnly {
		if err := l.checkPeers(ctx, l.found); err != nil {
			return false, err
		}
	}
	for _, s := range l.found {
		purged = purged || s.State.FirstSeq > max(BeginsWith(s.Config.Metadata), 1)
	}
	l.setDurability(l.found)
	return purged, nil
}

// Begins returns the first sequence of a partition's log when it was opened.
func (l *Set) Begins(p int) uint64 {
	i := slices.IndexFunc(l.found, func(s *natsjs.StreamInfo) bool { return s.Config.Name == layout.LogStream(p) })
	return l.found[i].State.FirstSeq
}

// CheckSettings compares an existing stream with what the log relies on. The error names
// the stream and every wrong setting, as NATS calls it, one per line.
//
// Settings that affect only time or space are the operator's. So are max_msgs and
// max_bytes: with discard new they refuse messages and delete none.
func CheckSettings(got, want natsjs.StreamConfig) error {
	var problems []error
	for _, c := range []struct {
		setting   string
		got, want any
		ok        bool
	}{
		{"subjects", got.Subjects, want.Subjects, slices.Equal(got.Subjects, want.Subjects)},
		{"storage", got.Storage, want.Storage, got.Storage == want.Storage},
		{"num_replicas", got.Replicas, want.Replicas, got.Replicas == want.Replicas},
		{"retention", got.Retention, want.Retention, got.Retention == want.Retention},
		{"discard", got.Discard, want.Discard, got.Discard == want.Discard},
		{"max_age", got.MaxAge, want.MaxAge, got.MaxAge == want.MaxAge},
		{
			"max_msgs_per_subject", got.MaxMsgsPerSubject, want.MaxMsgsPerSubject,
			max(got.MaxMsgsPerSubject, 0) == max(want.MaxMsgsPerSubject, 0),
		},
		{
			"compression", got.Compression, want.Compression, // on one server it affects only time
			got.Replicas <= 1 || got.Compression == natsjs.NoCompression,
		},
		{"no_ack", got.NoAck, want.NoAck, got.NoAck == want.NoAck},
		{"persist_mode", got.PersistMode, want.PersistMode, got.PersistMode == want.PersistMode},
		{"sealed", got.Sealed, want.Sealed, got.Sealed == want.Sealed},
		{"deny_delete", got.DenyDelete, want.DenyDelete, got.DenyDelete == want.DenyDelete},
		{"deny_purge", got.DenyPurge, want.DenyPurge, got.DenyPurge == want.DenyPurge},
		{"allow_direct", got.AllowDirect, want.AllowDirect, got.AllowDirect == want.AllowDirect},
		{"allow_atomic", got.AllowAtomicPublish, want.AllowAtomicPublish, got.AllowAtomicPublish == want.AllowAtomicPublish},
		{
			"republish", shown(got.RePublish), shown(want.RePublish), // the log may publish instead, see announce
			shown(got.RePublish) == shown(want.RePublish) || got.RePublish == nil && got.Metadata[metadataLive] == liveByLog,
		},
		{"mirror", got.Mirror != nil, want.Mirror != nil, (got.Mirror != nil) == (want.Mirror != nil)},
		{"sources", len(got.Sources), len(want.Sources), len(got.Sources) == len(want.Sources)},
		{
			"subject_transform", shown(got.SubjectTransform), shown(want.SubjectTransform),
			shown(got.SubjectTransform) == shown(want.SubjectTransform),
		},
	} {
		if !c.ok {
			problems = append(problems, fmt.Errorf("jetstream: stream %s: %s is %v, must be %v", got.Name, c.setting, c.got, c.want))
		}
	}
	return errors.Join(problems...)
}

// shown is what v points to, or "none".
func shown[T any](v *T) string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%+v", *v)
}
