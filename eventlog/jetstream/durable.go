package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// A server with GroupSync answers before what it has stored is on the disk. Then this
// file stands between its answers and everybody else: an append is acknowledged, and a
// message is handed to a reader, after a sync that covers it. The server republishes
// nothing; the log does, after the sync.

// synced is, for each stream of the log, up to which sequence it is known to be on the
// disk; nil if the server's answer says so already.
type synced map[string]*atomic.Uint64

func newSynced(l *Log) synced {
	if l.opts.Server == nil || !l.opts.Server.GroupSync() {
		return nil
	}
	s := synced{}
	for p := range l.opts.Partitions {
		for _, c := range l.streamsOf(p) {
			s[c.Name] = &atomic.Uint64{}
		}
	}
	return s
}

// groupSync reports whether the log waits for the disk itself.
func (l *Log) groupSync() bool { return l.synced != nil }

// await returns when a stream is on the disk up to a sequence that the server has
// answered with.
func (l *Log) await(ctx context.Context, stream string, seq uint64) error {
	known := l.synced[stream]
	if known == nil || seq <= known.Load() {
		return nil
	}
	if err := l.opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	raise(known, seq)
	return nil
}

// raise sets a to at least n.
func raise(a *atomic.Uint64, n uint64) {
	for {
		was := a.Load()
		if n <= was || a.CompareAndSwap(was, n) {
			return
		}
	}
}

// awaitAll returns when the streams are on the disk as they are when the log is opened:
// a process that was killed may have left something that it had not waited for.
func (l *Log) awaitAll(ctx context.Context) error {
	if !l.groupSync() {
		return nil
	}
	if err := l.opts.Server.Sync(ctx); err != nil {
		return fmt.Errorf("jetstream: %w", err)
	}
	for _, s := range l.streams {
		raise(l.synced[s.Config.Name], s.State.LastSeq)
	}
	return nil
}

// awaitStored is await for messages that were just stored.
func (l *Log) awaitStored(ctx context.Context, m *nats.Msg, last uint64) error {
	if !l.groupSync() {
		return nil
	}
	if err := l.await(ctx, streamOf(m.Subject), last); err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return nil
}

// awaitRemoved returns when what the server has removed or overwritten in some streams is
// so on the disk.
func (l *Log) awaitRemoved(ctx context.Context, streams ...string) error {
	if !l.groupSync() {
		return nil
	}
	return l.opts.Server.SyncStreams(ctx, streams...)
}

// families are the subjects whose second token is a partition, and their streams.
var families = [...]struct{ subjects, streams string }{
	{logSubjects, logStreams}, {segmentSubjects, segmentStreams}, {floorSubjects, segmentStreams}, {erasedSubjects, segmentStreams},
}

// streamOf returns the log's stream that takes a subject.
func streamOf(subject string) string {
	switch {
	case strings.HasPrefix(subject, blobSubjects):
		return blobStream
	case strings.HasPrefix(subject, placesSubjects):
		return placesStream
	}
	for _, family := range families {
		if rest, ok := strings.CutPrefix(subject, family.subjects); ok {
			partition, _, _ := strings.Cut(rest, ".")
			return family.streams + partition
		}
	}
	return ""
}

// announceLate announces an append that is stored, when it is on the disk: its caller has
// left before.
func (l *Log) announceLate(a *pendingAppend, last uint64) {
	if !l.groupSync() {
		return
	}
	l.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaderPatience)
		defer cancel()
		if l.await(ctx, streamOf(a.messages[0].Subject), last) == nil {
			l.announce(a, last)
		}
	})
}

// announce hands an append to this node's followers of the session, and publishes it if
// somebody else listens. A server without GroupSync has republished it already.
func (l *Log) announce(a *pendingAppend, last uint64) {
	if !l.groupSync() {
		return
	}
	now := time.Now()
	own := l.hubOf(a.session).deliver(a, last, now)
	if l.opts.Server.Interest(LiveSubject(a.session)) <= own {
		return
	}
	at, previous := last+1-uint64(len(a.messages)), a.expected
	stamp := now.UTC().Format(time.RFC3339Nano)
	for i, m := range a.messages {
		live := newMessage(m.Subject, a.records[i], false)
		live.Subject = LiveSubject(a.session)
		for name, values := range m.Header {
			if name != headerEnvelope {
				live.Header[name] = values
			}
		}
		live.Header[headerSubject] = []string{m.Subject}
		live.Header[headerSequence] = []string{strconv.FormatUint(at, 10)}
		live.Header[headerLastSequence] = []string{strconv.FormatUint(previous, 10)}
		live.Header[headerTimeStamp] = []string{stamp}
		live.Header[headerStream] = []string{streamOf(m.Subject)}
		// A live record that is lost shows when the next one names it, or at the next check.
		_ = l.nc.PublishMsg(live)
		at, previous = at+1, at
	}
}
