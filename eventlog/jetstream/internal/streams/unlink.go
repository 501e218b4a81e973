package streams

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

const (
	// unlinkAlone is the number of messages of a subject up to which they are removed one
	// by one.
	unlinkAlone = 200
	// unlinkBytes bounds how much of a stream one purge by subject may walk: the server
	// takes 1 to 2 ms for a MiB, and appends wait.
	unlinkBytes = 64 << 20
	// longestPause bounds the pause between two removals: one that took longer waited for
	// a leader, not for the disk.
	longestPause = 250 * time.Millisecond
)

// Scrubs reports whether a stream's removed messages are overwritten in the server's
// files, not by the server one by one. Compressed blocks can't be; segments on one
// replica are in such blocks. On several replicas, overwriting by the servers would not
// be enough: a replica that was down receives only which messages are gone.
func (l *Set) Scrubs(stream string) bool {
	return l.Opts.Server != nil && l.Owns(stream) && (l.Opts.Replicas > 1 || !strings.HasPrefix(stream, layout.SegmentStreams))
}

// EraseSubject removes a subject's messages with sequence <= upTo for good, and returns
// how many. It uses secure deletes, or, in a stream that is scrubbed, removes them so
// that they can't be found; the caller then has them scrubbed.
func (l *Set) EraseSubject(ctx context.Context, stream, subject string, upTo uint64) (n int, err error) {
	if l.Scrubs(stream) {
		if some, err := l.purgeSubject(ctx, stream, subject, upTo); err != nil || some > 0 {
			return some, err
		}
	}
	for at := uint64(0); ; n++ {
		if at, err = l.FirstFrom(ctx, stream, subject, at+1); err != nil || at == 0 || at > upTo {
			return n, err
		}
		if err := l.Overwrite(ctx, stream, at); err != nil {
			return n, err
		}
	}
}

// purgeSubject removes a subject's messages in one request, if they are many and close
// together, and returns how many there were.
func (l *Set) purgeSubject(ctx context.Context, stream, subject string, upTo uint64) (n int, err error) {
	count, err := l.Count(ctx, stream, subject)
	if err != nil || count <= unlinkAlone {
		return 0, err
	}
	first, err := l.FirstFrom(ctx, stream, subject, 1)
	if err != nil || first == 0 || first > upTo {
		return 0, err
	}
	s, err := l.FindStream(ctx, stream)
	if err != nil {
		return 0, err
	}
	state := s.CachedInfo().State
	if share := float64(state.LastSeq-first+1) / float64(state.LastSeq-state.FirstSeq+1); share*float64(state.Bytes) > unlinkBytes {
		return 0, nil
	}
	var opts []natsjs.StreamPurgeOpt
	if upTo < math.MaxUint64 {
		opts = append(opts, natsjs.WithPurgeSequence(upTo+1))
	}
	opts = append(opts, natsjs.WithPurgeSubject(subject))
	err = link.Settle(ctx, l.Conn, func(ctx context.Context) error {
		return l.Step(ctx, "purge", func(ctx context.Context) error { return s.Purge(ctx, opts...) })
	})
	if err != nil {
		return 0, fmt.Errorf("jetstream: purge %s: %w", subject, err)
	}
	left, err := l.Count(ctx, stream, subject)
	return int(count - min(count, left)), err
}

// Overwrite removes a message for good, one at a time among all calls of this node,
// followed by a pause as long as it took. Where the server overwrites the message, the
// store is locked while it rewrites a block of up to 8 MiB; appends should wait for one
// such block, not for those of all erasures in progress.
func (l *Set) Overwrite(ctx context.Context, stream string, seq uint64) error {
	if l.Opts.Hook != nil { // which lets one request at a time proceed
		return l.SecureDelete(ctx, stream, seq)
	}
	select {
	case l.erasing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.erasing }()
	began := time.Now()
	err := l.SecureDelete(ctx, stream, seq)
	switch {
	case l.Scrubs(stream):
		l.Yield(ctx, began)
	case err == nil:
		_ = eventlog.Sleep(ctx, min(time.Since(began), longestPause)) // the next call returns the error
	}
	return err
}
