package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// Erase implements eventlog.Log. A record of type erased fences the session:
// it is not found any more, and whoever would append behind another record
// fails. Then every message of the session is overwritten, the fence last. A
// purge would leave the bytes in the stores' files. Overwriting rewrites a
// message's block, several milliseconds for each.
//
// On more than one replica the servers' own logs keep bytes until they
// compact. The erasure stays pending, which a message on
// helix.erased.<p>.<S> remembers, until Options.Scan finds nothing.
func (l *Log) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	ctx, err := l.frees(ctx)
	if err != nil {
		return eventlog.Erasure{}, err
	}
	fence, err := l.fence(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return l.erased(ctx, session)
	}
	if err != nil {
		return eventlog.Erasure{}, err
	}
	return l.eraseTo(ctx, session, fence)
}

// FinishErasures goes on with the erasures, of the sessions that are asked for,
// which have begun and not ended, as when their node has died, and returns how
// many there were. It looks at each of these sessions, and begins no erasure.
func (l *Log) FinishErasures(ctx context.Context, asked func(session string) bool) (n int, err error) {
	if ctx, err = l.frees(ctx); err != nil {
		return 0, err
	}
	for session, err := range l.Sessions(ctx) {
		if err != nil {
			return n, err
		}
		if !asked(session) {
			continue
		}
		began := time.Now()
		some, err := l.finishErasure(ctx, session)
		if err != nil {
			return n, fmt.Errorf("session %q: %w", session, err)
		}
		if some {
			n++
		}
		eventlog.Yield(ctx, began)
	}
	return n, nil
}

// finishErasure goes on with a session's erasure, if one has begun. It does not
// fence: when others have finished, the session may have been created anew.
func (l *Log) finishErasure(ctx context.Context, session string) (some bool, err error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return false, err
	}
	fence, err := l.lastMessage(ctx, stream, subject)
	switch {
	case errors.Is(err, errNoMessage), err == nil && !isErased(fence.header):
		return false, nil
	case err != nil:
		return false, err
	}
	if _, err = l.eraseTo(ctx, session, fence.sequence); errors.Is(err, eventlog.ErrSessionNotFound) {
		err = nil
	}
	return true, err
}

// eraseTo overwrites all messages of a session that lie before its fence, and then
// that.
func (l *Log) eraseTo(ctx context.Context, session string, fence uint64) (eventlog.Erasure, error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return eventlog.Erasure{}, err
	}
	e := eventlog.Erasure{Pending: true} // the fence is durable
	s := l.sealerOf(session)
	s.working.Lock()
	s.forget(session)
	s.working.Unlock()
	// What comes behind these is of a session that was created anew, when
	// somebody else has finished the same erasure.
	p := Partition(session, l.opts.Partitions)
	segments, err := l.lastOf(ctx, segmentStream(p))
	if err != nil {
		return e, err
	}
	blobs, err := l.lastOf(ctx, blobStream)
	if err != nil {
		return e, err
	}
	again, err := l.lastMessage(ctx, stream, subject)
	if err != nil && !errors.Is(err, errNoMessage) {
		return e, err
	}
	if err != nil || again.sequence != fence {
		return l.erased(ctx, session)
	}
	for _, part := range []struct {
		stream, subject string
		upTo            uint64
	}{
		{blobStream, l.blobPrefix(session) + ">", blobs},
		{segmentStream(p), segmentSubject(session, p), segments},
		{segmentStream(p), floorSubject(session, p), segments},
	} {
		if _, err := l.eraseSubject(ctx, part.stream, part.subject, part.upTo); err != nil {
			return e, err
		}
	}
	if e.Records, err = l.eraseSubject(ctx, stream, subject, fence-1); err != nil {
		return e, err
	}
	if l.opts.Replicas > 1 {
		mark := &nats.Msg{Subject: erasedSubject(session, p), Header: nats.Header{}}
		if _, err := l.publish(ctx, []*nats.Msg{mark}); err != nil {
			return e, fmt.Errorf("jetstream: erase: %w", err)
		}
	}
	if err := l.secureDelete(ctx, stream, fence); err != nil || l.opts.Replicas == 1 {
		e.Pending = err != nil
		return e, err
	}
	settled, err := l.erased(ctx, session)
	e.Pending = settled.Pending || err != nil && !errors.Is(err, eventlog.ErrSessionNotFound)
	return e, err
}

// erased tells of a session that is not there whether bytes of it still may
// be.
func (l *Log) erased(ctx context.Context, session string) (eventlog.Erasure, error) {
	p := Partition(session, l.opts.Partitions)
	_, err := l.lastMessage(ctx, segmentStream(p), erasedSubject(session, p))
	if errors.Is(err, errNoMessage) {
		return eventlog.Erasure{}, eventlog.ErrSessionNotFound
	}
	if err != nil {
		return eventlog.Erasure{}, err
	}
	if l.opts.Scan == nil {
		return eventlog.Erasure{Pending: true}, nil
	}
	found, err := l.opts.Scan(ctx, []string{logSubject(session, p), segmentSubject(session, p), l.blobPrefix(session)})
	if err != nil || found {
		return eventlog.Erasure{Pending: true}, err
	}
	_, err = l.eraseSubject(ctx, segmentStream(p), erasedSubject(session, p), math.MaxUint64)
	return eventlog.Erasure{}, err
}

// fence returns the sequence of the session's erased record, which it appends
// if nobody has.
func (l *Log) fence(ctx context.Context, session string) (uint64, error) {
	stream, subject, err := l.place(session)
	if err != nil {
		return 0, err
	}
	for {
		m, err := l.lastMessage(ctx, stream, subject)
		if err == nil && isErased(m.header) {
			return m.sequence, nil
		}
		if err != nil && !errors.Is(err, errNoMessage) {
			return 0, err
		}
		head, err := l.Head(ctx, session)
		if err != nil {
			return 0, err
		}
		erased, err := eventlog.NewFact(session, &eventlog.Erased{FactBase: eventlog.FactBase{
			SessionID: session, Timestamp: time.Now().UnixMilli(),
		}}, eventlog.Labels{})
		if err != nil {
			return 0, err
		}
		_, err = l.Append(ctx, session, head, []eventlog.Entry{erased})
		_, conflict := errors.AsType[*eventlog.ConflictError](err)
		if err != nil && !conflict && !errors.Is(err, eventlog.ErrOutcomeUnknown) {
			return 0, fmt.Errorf("jetstream: erase: %w", err)
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
	}
}

// lastOf returns a stream's last sequence.
func (l *Log) lastOf(ctx context.Context, stream string) (uint64, error) {
	var s natsjs.Stream
	err := Settle(ctx, l.nc, func(ctx context.Context) (err error) {
		s, err = l.js.Stream(ctx, stream)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("jetstream: stream %s: %w", stream, err)
	}
	return s.CachedInfo().State.LastSeq, nil
}

// eraseSubject overwrites a subject's messages with sequence <= upTo.
func (l *Log) eraseSubject(ctx context.Context, stream, subject string, upTo uint64) (n int, err error) {
	for at := uint64(0); ; n++ {
		if at, err = l.firstFrom(ctx, stream, subject, at+1); err != nil || at == 0 || at > upTo {
			return n, err
		}
		if err := l.overwrite(ctx, stream, at); err != nil {
			return n, err
		}
	}
}

// longestPause bounds the pause between two overwritten messages: what took longer
// waited for a leader, not for the disk.
const longestPause = 250 * time.Millisecond

// overwrite is secureDelete in turn with all others of this node, and with a
// pause behind it as long as it took: the store is locked while it rewrites a
// block of up to 8 MiB, and appends shall wait for one such block, not for
// those of all erasures under way.
func (l *Log) overwrite(ctx context.Context, stream string, seq uint64) error {
	select {
	case l.erasing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.erasing }()
	began := time.Now()
	if err := l.secureDelete(ctx, stream, seq); err != nil {
		return err
	}
	pause := time.NewTimer(min(time.Since(began), longestPause))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done(): // the next one says so
	}
	return nil
}
