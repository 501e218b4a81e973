package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// besideFor is how long a stream of Options.Beside, in which the servers overwrite single
// messages, is scrubbed again: a server may have read a block earlier, and write it back
// when it overwrites another message. It drops the block about ten seconds after the last
// read.
const besideFor = 2 * time.Minute

// besides records what was scrubbed in streams of Options.Beside.
type besides struct {
	mu  sync.Mutex
	all []besideScrub
}

type besideScrub struct {
	Part
	until time.Time
}

func (l *Store) rememberBeside(p Part) {
	l.beside.mu.Lock()
	defer l.beside.mu.Unlock()
	others := slices.DeleteFunc(l.beside.all, func(b besideScrub) bool { return b.Part == p })
	l.beside.all = append(others, besideScrub{p, time.Now().Add(besideFor)})
}

// ScrubBeside scrubs again what was scrubbed recently.
func (l *Store) ScrubBeside(ctx context.Context) error {
	l.beside.mu.Lock()
	l.beside.all = slices.DeleteFunc(l.beside.all, func(b besideScrub) bool { return time.Now().After(b.until) })
	all := slices.Clone(l.beside.all)
	l.beside.mu.Unlock()
	for _, b := range all {
		if _, _, err := l.Opts.Server.Scrub(ctx, b.Stream, b.Subject, b.From, b.UpTo); err != nil {
			return err
		}
	}
	return nil
}

// clockSkew is how far apart the clocks of servers may be.
const clockSkew = time.Minute

// remains is what an erasure has left. Either it disappears without help, and the erasure
// waits for it, or an operator has to act.
type remains struct {
	text  string
	waits bool
}

func (r remains) Some() bool { return r.text != "" }

func (r remains) Tell(e *eventlog.Erasure) {
	if r.waits {
		e.WaitsFor = r.text
	} else {
		e.Left = r.text
	}
}

// waiting is something that is left and disappears without help.
func waiting(format string, a ...any) remains {
	return remains{text: fmt.Sprintf(format, a...), waits: true}
}

// scrub overwrites, in the files of this process's server, the messages that an erasure
// has removed, and returns what is left.
func (l *Store) scrub(ctx context.Context, e *Erasing) (left remains, err error) {
	clustered := false
	for _, p := range e.Parts {
		_, last, messages, ok := l.Opts.Server.Replica(p.Stream)
		if !ok {
			continue // without a replica there are no files
		}
		// Removals lower the number of messages, and come in the same order everywhere.
		if last < p.Last || last == p.Last && messages > p.Messages {
			return waiting("the replica of stream %s on server %s is behind", p.Stream, l.Opts.Server.Name()), nil
		}
		clustered = clustered || p.Replicas > 1
	}
	for _, p := range e.Parts {
		switch {
		case p.Scrub:
			_, some, err := l.Opts.Server.Scrub(ctx, p.Stream, p.Subject, p.From, p.UpTo)
			if err != nil {
				return left, err
			}
			if !l.Owns(p.Stream) {
				l.rememberBeside(p)
			}
			if some > 0 {
				return waiting("%d messages in files of stream %s on server %s", some, p.Stream, l.Opts.Server.Name()), nil
			}
		case p.Look:
			some, err := l.Opts.Server.Holds(ctx, p.Stream, p.Subject, p.From, p.UpTo)
			if err == nil && some > 0 {
				err = l.Opts.Server.ScrubAtStart(p.Stream, p.Subject, p.UpTo)
			}
			if err != nil {
				return left, err
			}
			if some > 0 {
				return remains{text: fmt.Sprintf("%d messages in files of stream %s on server %s, which an older version has trimmed: "+
					"restart that server, which overwrites them before it runs", some, p.Stream, l.Opts.Server.Name())}, nil
			}
		}
	}
	if !clustered {
		return left, nil
	}
	return l.scrubAgreement(ctx, e)
}

// scrubAgreement makes this server drop what its replicas' Raft logs have of the session.
func (l *Store) scrubAgreement(ctx context.Context, e *Erasing) (left remains, err error) {
	var texts, streams []string
	for _, p := range e.Parts {
		text := p.Subject
		if text[len(text)-1] == '>' {
			text = text[:len(text)-1]
		}
		texts = append(texts, text)
		streams = append(streams, p.Stream)
	}
	before := e.Time.Add(clockSkew)
	for try := range 2 {
		some, err := l.Opts.Server.AgreementHolds(ctx, before, texts...)
		if err != nil || !some {
			return left, err
		}
		if try == 0 {
			for _, stream := range slices.Compact(slices.Sorted(slices.Values(streams))) {
				l.Opts.Server.Agreed(stream)
			}
		}
	}
	return waiting("entries in the Raft logs of server %s, which it drops with its next snapshot of each stream", l.Opts.Server.Name()), nil
}
