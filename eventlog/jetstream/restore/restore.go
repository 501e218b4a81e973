package restore

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/verify"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// SequencesBehind is how many sequences a restored log skips after the last copied one.
// The lost log may have assigned them since the copy; they are never assigned again, so
// no cursor of a client means another record.
const SequencesBehind = 1 << 32

// maxEnd is the last sequence after which a log can be restored: every client can
// represent the numbers that follow.
const maxEnd = 1<<53 - 2*SequencesBehind

// Errors of a restore.
var (
	// ErrNotEmpty: the deployment already has streams of helixd.
	ErrNotEmpty = streams.ErrNotEmpty
	// ErrRestoring: a restore into the deployment has begun and is not finished.
	ErrRestoring = streams.ErrRestoring
)

// Options configure a restore.
type Options struct {
	// Ends are the last sequences of the copied log's partitions, see eventlog.Copier.
	// Required.
	Ends []uint64
	// Placement is that of the copied log; nil if its number of partitions has never
	// changed.
	Placement *eventlog.Placement
	// Replicas of each stream; 0 means 1.
	Replicas int
	// Backup is when the backup began. If it is set, and the context of Session has an
	// actor, see fact.WithActor, an fact.SessionImported is added after a
	// session's records.
	Backup time.Time
	// ID identifies the restore, for [Look] and [Discard]. Empty: a new one.
	ID string
}

// Restorer writes copied sessions into a deployment without a log. Records keep their
// sequences: they are in segments, as if a purge had removed them from the log, and the
// log continues after them, see [SequencesBehind]. Until Finish no node can open the log.
type Restorer struct {
	log    *store.Store
	ends   []uint64
	backup time.Time
}

// Begin creates the streams of a log in a deployment without one. The connection stays
// the caller's. Errors: ErrNotEmpty.
func Begin(ctx context.Context, nc *nats.Conn, o Options) (*Restorer, error) {
	if n := len(o.Ends); n < 1 || n > layout.MaxPartitions {
		return nil, fmt.Errorf("jetstream: restore: a log has 1 to %d partitions, not %d", layout.MaxPartitions, n)
	}
	if slices.Max(o.Ends) > maxEnd {
		return nil, fmt.Errorf("%w: sequence %d", wire.ErrDamaged, slices.Max(o.Ends))
	}
	if err := checkEmpty(ctx, nc); err != nil {
		return nil, err
	}
	places, err := layout.PlacesOf(o.Placement, len(o.Ends))
	if err != nil {
		return nil, err
	}
	first := make([]uint64, len(o.Ends))
	for p, end := range o.Ends {
		first[p] = end + SequencesBehind + 1
	}
	log, err := store.Open(ctx, nc, link.Options{
		Partitions: len(o.Ends), Replicas: o.Replicas,
		Restores: &link.RestoreMark{ID: cmp.Or(o.ID, rand.Text()), First: first, Places: places},
	})
	if err != nil {
		return nil, err
	}
	return &Restorer{log: log, ends: o.Ends, backup: o.Backup}, nil
}

func checkEmpty(ctx context.Context, nc *nats.Conn) error {
	s, err := Look(ctx, nc)
	if err == nil && len(s.Streams) > 0 {
		err = fmt.Errorf("%w: there is a stream %s", ErrNotEmpty, s.Streams[0])
	}
	return err
}

// Session writes the records of a session that was not written yet; retention may have
// removed those up to floor. It returns how many there were. After an error the session
// is incomplete: the restore has failed.
func (r *Restorer) Session(ctx context.Context, session string, floor uint64, records iter.Seq2[eventlog.Copied, error]) (n int, err error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return 0, err
	}
	w := &restoring{session: session, l: r.log, partition: r.log.PartitionOf(session)}
	if floor > 0 {
		if err := w.mark(ctx, floor); err != nil {
			return 0, err
		}
	}
	for c, err := range records {
		if err != nil {
			return n, err
		}
		if last := max(w.last, floor); c.Sequence <= last || c.Sequence > r.ends[w.partition] {
			return n, fmt.Errorf("%w: session %q: record %d does not lie between %d and its partition's end, %d",
				wire.ErrDamaged, session, c.Sequence, last, r.ends[w.partition])
		}
		if err := w.add(ctx, c); err != nil {
			return n, err
		}
		n++
	}
	w.all = true
	if err := w.write(ctx); err != nil || n == 0 {
		return n, err
	}
	return n, r.sign(ctx, session, w.last, n)
}

// sign appends a record that names the person who has restored the session.
func (r *Restorer) sign(ctx context.Context, session string, head uint64, records int) error {
	f := &fact.SessionImported{
		Records: records, Backup: r.backup.UnixMilli(),
		Base: fact.Base{SessionID: session, Timestamp: time.Now().UnixMilli()},
	}
	if fact.SetActor(ctx, f); f.By == nil || r.backup.IsZero() {
		return nil
	}
	e, err := eventlog.NewFact(session, f, eventlog.Labels{})
	if err == nil {
		_, err = r.log.Append(ctx, session, head, []eventlog.Entry{e})
	}
	if err != nil {
		return fmt.Errorf("jetstream: restore: session %q: %w", session, err)
	}
	return nil
}

// restoring is the work on one session.
type restoring struct {
	l         *store.Store
	session   string
	partition int
	records   []wire.Stored // not written yet
	all       bool          // records has the session's last one
	segment   *wire.Segment // the last one; at is its sequence in the stream
	at        uint64
	last      uint64 // record
	size      int    // of the payloads not written yet
}

// mark stores that retention has removed the records up to floor. The first segment then
// follows one that does not exist.
func (w *restoring) mark(ctx context.Context, floor uint64) error {
	w.segment = &wire.Segment{Records: []wire.Stored{{Record: eventlog.Record{Sequence: floor}}}}
	m := &nats.Msg{Subject: layout.FloorSubject(w.session, w.partition), Data: strconv.AppendUint(nil, floor, 10), Header: nats.Header{}}
	_, err := w.l.StoreMessage(ctx, m)
	if err != nil {
		return fmt.Errorf("jetstream: restore: %w", err)
	}
	return nil
}

// add adds the session's next record.
func (w *restoring) add(ctx context.Context, c eventlog.Copied) error {
	s := wire.Stored{Record: c.Record, Linked: !c.Unlinked}
	if len(c.Payload) > w.l.Inline {
		ref := wire.RefOf(c.Payload)
		_, err := w.l.BlobAfter(ctx, w.session, ref)
		if errors.Is(err, link.ErrNoMessage) {
			_, err = w.l.StoreBlob(ctx, w.session, ref, c.Payload, wire.HeaderAfter, c.Sequence)
		}
		if err != nil {
			return err
		}
		s.Blob, s.Payload = ref.String(), ref.Placeholder(c.Type)
	}
	w.records = append(w.records, s)
	w.last = c.Sequence
	w.size += len(s.Payload)
	if len(w.records) < wire.SegmentRecords && w.size < wire.SegmentBytes {
		return nil
	}
	return w.write(ctx)
}

// write stores the segments that are full, and the last one too once all records were
// added.
func (w *restoring) write(ctx context.Context) error {
	for {
		next := w.segment.Take(w.at, w.records, time.Time{}, w.all)
		if next == nil {
			return nil
		}
		b, err := next.Pack()
		if err != nil {
			return err
		}
		at, err := w.l.StoreMessage(ctx, &nats.Msg{Subject: layout.SegmentSubject(w.session, w.partition), Data: b, Header: nats.Header{
			wire.HeaderExpectedLast: {strconv.FormatUint(w.at, 10)},
		}})
		if err != nil {
			return fmt.Errorf("jetstream: restore: session %q: %w", w.session, err)
		}
		for _, s := range next.Records {
			w.size -= len(s.Payload)
		}
		w.records = append([]wire.Stored(nil), w.records[len(next.Records):]...)
		w.segment, w.at = next, at
	}
}

// Read yields the records of a session that was written, from a sequence on: to compare
// them with their source.
func (r *Restorer) Read(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return r.log.Read(ctx, session, from, 0)
}

// Head returns the last sequence of a session. Errors: [eventlog.ErrSessionNotFound].
func (r *Restorer) Head(ctx context.Context, session string) (uint64, error) {
	return r.log.Head(ctx, session)
}

// Verify reports problems of a session that was written to found, as the log's Verify.
func (r *Restorer) Verify(ctx context.Context, session string, found func(integrity.Finding)) error {
	_, err := verify.New(r.log).Verify(ctx, session, found)
	return err
}

// Partitions returns the number of partitions.
func (r *Restorer) Partitions() int { return r.log.Partitions() }

// PartitionOf returns the partition of a session.
func (r *Restorer) PartitionOf(session string) int { return r.log.PartitionOf(session) }

// Finish makes the log available to all nodes. It can be repeated.
func (r *Restorer) Finish(ctx context.Context) error {
	l := r.log
	for p := len(r.ends) - 1; p >= 0; p-- {
		configs := l.StreamsOf(p)
		for i := len(configs) - 1; i >= 0; i-- { // the first log stream last: it makes the log visible
			if err := unmark(ctx, l, configs[i].Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func unmark(ctx context.Context, l *store.Store, name string) error {
	return l.Step(ctx, "unmark", func(ctx context.Context) error { return unmarkStream(ctx, l.Conn, l.JS, name) })
}

func unmarkStream(ctx context.Context, nc *nats.Conn, js natsjs.JetStream, name string) error {
	err := link.Settle(ctx, nc, func(ctx context.Context) error {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return err
		}
		config := s.CachedInfo().Config
		config.Metadata = maps.Clone(config.Metadata)
		delete(config.Metadata, streams.MetadataRestoring)
		_, err = js.UpdateStream(ctx, config)
		return err
	})
	if err != nil {
		return fmt.Errorf("jetstream: restore: stream %s: %w", name, err)
	}
	return nil
}

// Finish is [Restorer.Finish] for a restore that wrote everything and whose process has
// ended. Errors: ErrNotEmpty: there is no restore of that id.
func Finish(ctx context.Context, nc *nats.Conn, id string) error {
	s, js, err := look(ctx, nc)
	if err != nil {
		return err
	}
	if id == "" || s.Restoring != id {
		return fmt.Errorf("%w: it has no unfinished restore %s", ErrNotEmpty, id)
	}
	for _, name := range firstStreamLast(s.Streams) { // see Restorer.Finish
		if err := unmarkStream(ctx, nc, js, name); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the restore, finished or not; it is idempotent.
func (r *Restorer) Close() error { return r.log.Close() }
