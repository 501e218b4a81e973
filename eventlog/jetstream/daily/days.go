// Package daily stores the daily usage of tenants in a JetStream stream, which all nodes
// of a log share.
//
// Each tenant and day has a subject. A node replaces its value by compare-and-set: only
// if it is still the value that the node has read. Old days expire after 48 hours without
// a change.
package daily

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
)

// Stream is the stream of days, and Subjects are its subjects.
const (
	Stream   = "HELIX_SPENT"
	Subjects = subjects + "*.*"
)

const (
	subjects = "helix.spent." // followed by the key
	// keptFor is how long a day is kept after its last change.
	keptFor = 48 * time.Hour
)

// Days implements quota.Days. A value can be at most as large as the servers' largest
// message.
type Days struct {
	nc       *nats.Conn
	replicas int
	sync     func(context.Context) error

	mu     sync.Mutex
	js     natsjs.JetStream
	stream natsjs.Stream // nil until it is used
}

// New returns the days of a deployment. Its stream is created on first use, with that
// many replicas; 0 means 1. sync returns when what the server has answered is durable;
// nil: it already is. The connection stays the caller's.
func New(nc *nats.Conn, replicas int, sync func(context.Context) error) *Days {
	return &Days{nc: nc, replicas: max(replicas, 1), sync: sync}
}

// open finds the stream, or creates it.
func (d *Days) open(ctx context.Context) (natsjs.JetStream, natsjs.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stream != nil {
		return d.js, d.stream, nil
	}
	js, err := jetstream.NewJetStream(d.nc)
	if err != nil {
		return nil, nil, fmt.Errorf("daily: %w", err)
	}
	d.stream, err = jetstream.FindOrCreate(ctx, d.nc, js, natsjs.StreamConfig{
		Name: Stream, Description: "helixd: what tenants spend a day", Subjects: []string{Subjects},
		Storage: natsjs.FileStorage, MaxMsgsPerSubject: 1, MaxAge: keptFor, Replicas: d.replicas,
		// Not AllowDirect: a replica that lags would return an older value.
	})
	if err != nil {
		d.stream = nil
		return nil, nil, fmt.Errorf("daily: stream %s: %w: %w", Stream, eventlog.ErrUnavailable, err)
	}
	d.js = js
	return js, d.stream, nil
}

// Load returns the value of a key and its revision; nil and 0 if there is none. Errors:
// [eventlog.ErrUnavailable].
func (d *Days) Load(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	_, stream, err := d.open(ctx)
	if err != nil {
		return nil, 0, err
	}
	err = jetstream.Settle(ctx, d.nc, func(ctx context.Context) error {
		m, err := stream.GetLastMsgForSubject(ctx, subjects+key)
		switch {
		case errors.Is(err, natsjs.ErrMsgNotFound):
			return nil
		case err != nil:
			return err
		}
		value, revision = m.Data, m.Sequence
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("daily: load: %w: %w", eventlog.ErrUnavailable, err)
	}
	return value, revision, nil
}

// Save replaces a value that still has the revision, and returns true. Otherwise it
// returns false, which may also happen if its first try succeeded but was not answered.
// Errors: [eventlog.ErrUnavailable]; the value may have been replaced.
func (d *Days) Save(ctx context.Context, key string, value []byte, revision uint64) (saved bool, err error) {
	js, _, err := d.open(ctx)
	if err != nil {
		return false, err
	}
	err = jetstream.Settle(ctx, d.nc, func(ctx context.Context) error {
		_, err := js.Publish(ctx, subjects+key, value, natsjs.WithExpectStream(Stream), natsjs.WithExpectLastSequencePerSubject(revision))
		return err
	})
	if err == nil && d.sync != nil {
		err = d.sync(ctx)
	}
	switch {
	case err == nil:
		return true, nil
	case jetstream.IsConflict(err):
		return false, nil
	}
	return false, fmt.Errorf("daily: save: %w: %w", eventlog.ErrUnavailable, err)
}

// Copy yields all values with their keys, for a backup: Save stores them in another
// deployment, with revision 0.
func Copy(ctx context.Context, nc *nats.Conn) iter.Seq2[eventlog.CopiedItem, error] {
	return func(yield func(eventlog.CopiedItem, error) bool) {
		for m, err := range jetstream.Messages(ctx, nc, Stream, Subjects) {
			var item eventlog.CopiedItem
			if err == nil {
				item = eventlog.CopiedItem{Key: strings.TrimPrefix(m.Subject, subjects), Data: m.Data}
			}
			if !yield(item, err) {
				return
			}
		}
	}
}
