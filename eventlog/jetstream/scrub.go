package jetstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Server is a NATS server in this process, as embed.Server is: what its streams
// remove the log can have it overwrite in its own files.
type Server interface {
	// Name is the server's name in its cluster.
	Name() string
	// GroupSync reports whether an answer of the server promises nothing before Sync
	// has returned. Then only this process writes the streams.
	GroupSync() bool
	// Sync returns when all that was stored before the call is on the disk.
	Sync(ctx context.Context) error
	// SyncStreams returns when all that some streams hold is on the disk, also what was
	// removed or rewritten in them, and their settings.
	SyncStreams(ctx context.Context, streams ...string) error
	// Interest returns how many subscriptions a message on a subject reaches.
	Interest(subject string) int
	// Replica returns what its own replica of a stream has; ok is false if it has
	// none.
	Replica(stream string) (first, last, messages uint64, ok bool)
	// Scrub overwrites removed messages up to a sequence in its files of a stream,
	// and returns how many of those are left that it found. A subject may end in
	// ".>".
	Scrub(ctx context.Context, stream, subject string, from, upTo uint64) (overwritten, left int, err error)
	// Holds returns how many messages Scrub would have to overwrite.
	Holds(ctx context.Context, stream, subject string, from, upTo uint64) (int, error)
	// ScrubAtStart has Scrub done when the server is started again.
	ScrubAtStart(stream, subject string, upTo uint64) error
	// ScrubPurged overwrites what a purge by sequence has left of a subject in the block in
	// which it ended.
	ScrubPurged(ctx context.Context, stream, subject string) error
	// Rescrub repeats Scrub where a purge may have undone it.
	Rescrub(ctx context.Context) error
	// AgreementHolds reports whether a text is in an entry, from before a moment,
	// of the logs by which its replicas agree with the others.
	AgreementHolds(ctx context.Context, before time.Time, texts ...string) (bool, error)
	// Agreed has it drop what it can from such a log.
	Agreed(stream string)
}

// besideFor is for how long a stream beside the log, of which the servers overwrite
// single messages, is scrubbed again: a server may have read a block before and writes
// that back with another message overwritten. It forgets it some ten seconds after
// nobody reads it any more.
const besideFor = 2 * time.Minute

// besides remembers what was scrubbed in streams beside the log.
type besides struct {
	mu  sync.Mutex
	all []besideScrub
}

type besideScrub struct {
	part
	until time.Time
}

func (l *Log) rememberBeside(p part) {
	l.beside.mu.Lock()
	defer l.beside.mu.Unlock()
	if !slices.ContainsFunc(l.beside.all, func(b besideScrub) bool { return b.part == p }) {
		l.beside.all = append(l.beside.all, besideScrub{p, time.Now().Add(besideFor)})
	}
}

// scrubBeside scrubs again what was scrubbed lately.
func (l *Log) scrubBeside(ctx context.Context) error {
	l.beside.mu.Lock()
	l.beside.all = slices.DeleteFunc(l.beside.all, func(b besideScrub) bool { return time.Now().After(b.until) })
	all := slices.Clone(l.beside.all)
	l.beside.mu.Unlock()
	for _, b := range all {
		if _, _, err := l.opts.Server.Scrub(ctx, b.Stream, b.Subject, b.From, b.UpTo); err != nil {
			return err
		}
	}
	return nil
}

// clockSkew is how far the clocks of servers may be apart.
const clockSkew = time.Minute

// remains is what an erasure has left. If it goes by itself it is waited for, else
// somebody has to do something.
type remains struct {
	text  string
	waits bool
}

func (r remains) some() bool { return r.text != "" }

func (r remains) tell(e *eventlog.Erasure) {
	if r.waits {
		e.WaitsFor = r.text
	} else {
		e.Left = r.text
	}
}

// waiting is what remains and goes by itself.
func waiting(format string, a ...any) remains {
	return remains{text: fmt.Sprintf(format, a...), waits: true}
}

// scrub overwrites, in the files of this process's server, what an erasure has
// removed, and returns what is left.
func (l *Log) scrub(ctx context.Context, e *erasing) (left remains, err error) {
	clustered := false
	for _, p := range e.Parts {
		_, last, messages, ok := l.opts.Server.Replica(p.Stream)
		if !ok {
			continue // no replica, no files
		}
		// Removals lower the number of messages, and come in the same order everywhere.
		if last < p.Last || last == p.Last && messages > p.Messages {
			return waiting("the replica of stream %s on server %s is behind", p.Stream, l.opts.Server.Name()), nil
		}
		clustered = clustered || p.Replicas > 1
	}
	for _, p := range e.Parts {
		switch {
		case p.Scrub:
			_, some, err := l.opts.Server.Scrub(ctx, p.Stream, p.Subject, p.From, p.UpTo)
			if err != nil {
				return left, err
			}
			if !l.owns(p.Stream) {
				l.rememberBeside(p)
			}
			if some > 0 {
				return waiting("%d messages in files of stream %s on server %s", some, p.Stream, l.opts.Server.Name()), nil
			}
		case p.Look:
			some, err := l.opts.Server.Holds(ctx, p.Stream, p.Subject, p.From, p.UpTo)
			if err == nil && some > 0 {
				err = l.opts.Server.ScrubAtStart(p.Stream, p.Subject, p.UpTo)
			}
			if err != nil {
				return left, err
			}
			if some > 0 {
				return remains{text: fmt.Sprintf("%d messages in files of stream %s on server %s, which an older version has trimmed: "+
					"restart that server, which overwrites them before it runs", some, p.Stream, l.opts.Server.Name())}, nil
			}
		}
	}
	if !clustered {
		return left, nil
	}
	return l.scrubAgreement(ctx, e)
}

// scrubAgreement has this server drop what its replicas' own logs hold of the
// session.
func (l *Log) scrubAgreement(ctx context.Context, e *erasing) (left remains, err error) {
	var texts, streams []string
	for _, p := range e.Parts {
		text := p.Subject
		if text[len(text)-1] == '>' {
			text = text[:len(text)-1]
		}
		texts = append(texts, text)
		streams = append(streams, p.Stream)
	}
	before := e.time.Add(clockSkew)
	for try := range 2 {
		some, err := l.opts.Server.AgreementHolds(ctx, before, texts...)
		if err != nil || !some {
			return left, err
		}
		if try == 0 {
			for _, stream := range slices.Compact(slices.Sorted(slices.Values(streams))) {
				l.opts.Server.Agreed(stream)
			}
		}
	}
	return waiting("entries in the Raft logs of server %s, which it drops with its next snapshot of each stream", l.opts.Server.Name()), nil
}
