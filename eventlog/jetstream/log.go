package jetstream

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

// Options configure a log. Zero values mean the defaults of an embedded
// server.
type Options struct {
	// Partitions is the number of streams. 0 means those that there are, else 1,
	// with more replicas 16. A log can't shrink; see Grow.
	Partitions int
	// Grow has [Open] call [Log.Grow] for a log that has fewer Partitions; else it refuses the log.
	Grow bool
	// Replicas of each stream; 0 means 1.
	Replicas int
	// Durability is what the server's operator knows of it; empty: what the
	// streams tell of their replicas, else unknown.
	Durability eventlog.Durability
	// Memory keeps the log in the server's memory: it ends with the server.
	// One replica only.
	Memory bool
	// Server is the NATS server of this process, if it keeps replicas of the
	// log: an erasure then overwrites, in its files, what is removed, and every
	// other server that keeps some has to be a node's that does so too. nil: the
	// servers overwrite message by message, and an erasure from more than one
	// replica stays pending: no node can know when it is done. On an in-process connection
	// of a server with GroupSync it is that server.
	Server Server
	// Beside names a stream in which others keep what they have of a session, and
	// its subject there, which ends in ".>"; they have the servers overwrite
	// it. An erasure is done when every replica has removed it.
	Beside func(session string, partition int) (stream, subject string)
	// Forget removes what others keep of a session that is being erased, at
	// least once, before another session of the id may be created.
	Forget func(ctx context.Context, session string) error
	// Refuses tells why nothing should be stored now, empty if it may; what
	// frees room may go on for longer. nil: there is never a reason.
	Refuses func(frees bool) string
	// Existing opens a log that exists as it is, with the partitions, the
	// replicas and the storage that it has, and creates nothing.
	Existing bool
	// ReadOnly is Existing for readers: settings that only writers rely on
	// are not looked at.
	ReadOnly bool
	// Metrics measure the log; nil: nothing does.
	Metrics *Metrics
	// hook is nil but in tests.
	hook hook
	// checkEvery is for tests; 0 means the constant.
	checkEvery time.Duration
	// announced is for tests; 0 means announceTime.
	announced time.Duration
}

// settled returns the options as the log's parts use them.
func (o *Options) settled(nc *nats.Conn) options {
	var p options
	if o != nil {
		p.Options = *o
	}
	p.Partitions, p.Replicas = max(p.Partitions, 0), max(p.Replicas, 1)
	if p.Server == nil {
		p.Server = syncingServer(nc)
	}
	return p
}

// Log is an eventlog.Log on JetStream.
type Log struct {
	*maintenance
	live  *live
	feeds feeds
}

// Open returns the log on nc, creating its streams if they are missing. The
// connection stays the caller's. What the log could not keep its promises on
// is refused by name: a server that is too old, other partitions than the log
// was created with, a stream's settings. A cluster that has just come up is
// waited for, see Settle. A later connection to a server that is too old is not
// used to append; see Info.
func Open(ctx context.Context, nc *nats.Conn, o *Options) (_ *Log, err error) {
	conn, err := newLink(nc, o.settled(nc))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	streams, err := openStreams(ctx, conn)
	if err != nil {
		return nil, err
	}
	records := newStore(streams)
	l := &Log{maintenance: newMaintenance(newSegments(records)), live: newLive(records), feeds: feeds{records}}
	if !conn.opts.ReadOnly {
		if err := l.dropAllGhosts(ctx); err != nil {
			return nil, err
		}
	}
	if err := records.start(ctx); err != nil {
		return nil, err
	}
	l.live.start()
	l.segments.start()
	conn.watchConnection()
	streams.startGrowth()
	if !conn.opts.ReadOnly {
		if err := records.watchHolds(); err != nil {
			return nil, fmt.Errorf("jetstream: %w", err)
		}
	}
	if conn.opts.Grow && conn.opts.Partitions > l.Partitions() {
		if err := l.Grow(ctx, conn.opts.Partitions); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Info implements eventlog.Log.
func (l *Log) Info() eventlog.Info {
	info := eventlog.Info{
		Backend: "jetstream", Durability: l.durability, Partitions: l.Partitions(),
		MaxRecordBytes: eventlog.MaxPayload, GatherFrom: l.opts.gatherFrom(),
	}
	info.Refuses, info.RefusesErasure = l.refuses(false), l.refuses(true)
	return info
}
