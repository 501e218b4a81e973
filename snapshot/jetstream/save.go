package jetstream

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/snapshot"
)

// Save implements snapshot.Folds.
func (f *Folds) Save(ctx context.Context, session string, s snapshot.Saved) (int, error) {
	if f.replicas == 0 {
		return 0, errReading
	}
	if len(s.State) > maxBytes {
		return 0, nil
	}
	stream, prefix, err := f.place(ctx, session)
	if err != nil {
		return 0, err
	}
	if s.Form != snapshot.JSON {
		return f.savePages(ctx, stream, prefix, s)
	}
	return f.put(ctx, stream, prefix+mark{seq: s.Sequence}.token(), s, s.State)
}

// put stores a body for whole to read, unless the same fold is stored, and returns how many
// bytes that took. It replaces a fold of another version or digest that is there when it
// begins. Another node may store a fold meanwhile and drop its records: that one stays, and
// put fails unless it is the same.
func (f *Folds) put(ctx context.Context, stream natsjs.Stream, subject string, s snapshot.Saved, body []byte) (int, error) {
	m := nats.NewMsg(subject)
	m.Header.Set(headerVersion, strconv.Itoa(s.Version))
	m.Header.Set(headerDigest, s.Digest)
	m.Data = body
	same := func(old *natsjs.RawStreamMsg) bool {
		return old.Header.Get(headerVersion) == m.Header.Get(headerVersion) && old.Header.Get(headerDigest) == s.Digest
	}
	old, err := f.ofLeader(ctx, stream, subject)
	if err != nil || old != nil && same(old) {
		return 0, err
	}
	if old != nil {
		if err := f.remove(ctx, stream, subject, old.Sequence); err != nil {
			return 0, err
		}
	}
	// finished reports whether another node has stored this fold meanwhile. If it has stored
	// another one, that is an error.
	finished := func() (bool, error) {
		now, err := f.ofLeader(ctx, stream, subject)
		if now == nil || err != nil {
			return false, err
		}
		if !same(now) {
			return false, fmt.Errorf("saved folds: another node has stored another fold on %s", subject)
		}
		return true, nil
	}
	if len(body) > partBytes {
		n := 0
		for part := range slices.Chunk(body, partBytes) {
			if done, err := f.putPart(ctx, stream, partSubject(subject, n), part, finished); done || err != nil {
				return 0, err
			}
			n++
		}
		m.Header.Set(headerParts, strconv.Itoa(n))
		m.Data = nil
	}
	for range putTries {
		if stored, err := f.once(ctx, m); stored || err != nil {
			return len(body), err
		}
		if done, err := finished(); done || err != nil {
			return 0, err
		}
		if err := eventlog.Sleep(ctx, putPause); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("saved folds: another node is storing %s: %w", subject, nats.ErrTimeout)
}

const (
	// putTries is how often a message is looked for that another node seems to be storing,
	// and putPause how long it then has.
	putTries = 10
	putPause = 50 * time.Millisecond
)

// putPart stores a part, unless an unfinished save has left the same one. It replaces any
// other, except if another node has finished a fold: then it returns finished's result.
//
// The look at the fold and the removal are two requests. If the other node finishes its
// fold between the two, the fold loses that part. Retention reads a fold that it has saved
// before it drops the records, and so keeps them, unless the removal comes even later.
func (f *Folds) putPart(ctx context.Context, stream natsjs.Stream, subject string, part []byte, finished func() (bool, error)) (done bool, err error) {
	for range putTries {
		old, err := f.ofLeader(ctx, stream, subject)
		if err != nil {
			return false, err
		}
		if old != nil {
			if bytes.Equal(old.Data, part) {
				return false, nil
			}
			if done, err := finished(); done || err != nil {
				return done, err
			}
			// A message that another one replaces would leave its bytes in the file,
			// where an erasure does not find them.
			if err := f.remove(ctx, stream, subject, old.Sequence); err != nil {
				return false, err
			}
		}
		if stored, err := f.once(ctx, &nats.Msg{Subject: subject, Data: part}); stored || err != nil {
			return false, err
		}
		if err := eventlog.Sleep(ctx, putPause); err != nil {
			return false, err
		}
	}
	return false, fmt.Errorf("saved folds: another node is storing %s: %w", subject, nats.ErrTimeout)
}

// once publishes a message and reports true, unless its subject has one, or another node is
// publishing it.
func (f *Folds) once(ctx context.Context, m *nats.Msg) (bool, error) {
	_, err := f.js.PublishMsg(ctx, m, natsjs.WithExpectLastSequencePerSubject(0))
	if logjs.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("saved folds: %w", err)
	}
	return true, nil
}
