package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Erasing is the progress of a session's erasure. Its mark is the last message on
// helix.erased.<p>.<S>:
//
//	wanted      Head is the session's last record: the session needs a tombstone.
//	tombstoned  Tombstone is the erased record. Parts are what must be removed, and up to
//	            which sequence: later messages are of a session that was created again.
//	removed     No one can read any of it; its bytes are being overwritten. Each server of a
//	            cluster reports on helix.erased.<p>.<S>~<server> that it has none left.
//	done        Nothing is left. The mark stays for an hour: it identifies a message that was
//	            sent before the tombstone and arrives after the end, see outlived.
//
// Without a mark there is nothing left to do.
type Erasing struct {
	Head      uint64 `json:"head,omitempty"`
	Tombstone uint64 `json:"fence,omitempty"`
	Parts     []Part `json:"parts,omitempty"`
	Removed   bool   `json:"removed,omitempty"`
	Done      bool   `json:"done,omitempty"`
	// Told: a caller of Erase has received the answer that the erasure is done.
	Told bool `json:"told,omitempty"`
	// Round is the round to which the servers' reports refer. It changes when there is
	// more to do, and with each erasure: a report may be stored after its erasure has
	// ended.
	Round uint64 `json:"round,omitempty"`

	At   uint64    `json:"-"` // the mark's sequence; 0: there is none
	Time time.Time `json:"-"` // when it was stored
}

// Part is the messages of a session in one stream.
type Part struct {
	Stream  string `json:"stream"`
	Subject string `json:"subject"`
	// From is the first sequence that existed, and UpTo the last that may exist.
	From uint64 `json:"from,omitempty"`
	UpTo uint64 `json:"upTo"`
	// Scrub: its bytes are overwritten in the servers' files. Look: the servers overwrite
	// them, except those that older versions have removed.
	Scrub bool `json:"scrub,omitempty"`
	Look  bool `json:"look,omitempty"`
	// Taken: it is only the message at UpTo; other messages on the subject may be kept.
	Taken bool `json:"taken,omitempty"`
	// Left: it was purged earlier, and may be in files that no node here can reach.
	Left bool `json:"left,omitempty"`
	// Last and Messages are the stream's state when everything was removed.
	Last     uint64 `json:"last,omitempty"`
	Messages uint64 `json:"messages,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

// DoneFor is how long a mark states that an erasure is done. No request may be under way
// for longer.
const DoneFor = time.Hour

// errMarkMoved: another node has advanced the same erasure.
var errMarkMoved = errors.New("jetstream: another node continues the erasure")

func (l *Store) ErasingOf(ctx context.Context, session string) (*Erasing, error) {
	e, old, err := l.mark(ctx, session)
	if old {
		e.Round = 1 // no server has reported yet
		e.Parts, err = l.PartsOf(ctx, session, 0)
	}
	return e, err
}

// mark returns the mark of a session's erasure, empty if there is none. old: an older
// version has stored it, without content, when it had removed everything.
func (l *Store) mark(ctx context.Context, session string) (e *Erasing, old bool, err error) {
	p := l.PartitionOf(session)
	m, err := l.LastMessage(ctx, layout.SegmentStream(p), layout.ErasedSubject(session, p))
	if errors.Is(err, link.ErrNoMessage) {
		return &Erasing{}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	e = &Erasing{At: m.Sequence, Time: m.At}
	if len(m.Data) == 0 {
		return e, true, nil
	}
	return e, false, e.Read(m)
}

func (e *Erasing) Read(m wire.Message) error {
	err := json.Unmarshal(m.Data, e)
	if err == nil && slices.ContainsFunc(e.Parts, func(p Part) bool { return p.Subject == "" }) { // another program's
		err = errors.New("a part has no subject")
	}
	if err != nil {
		return fmt.Errorf("%w: mark of an erasure: %w", wire.ErrDamaged, err)
	}
	return nil
}

// put stores the mark if the last one is still that from which e was read.
func (l *Store) put(ctx context.Context, session string, e *Erasing) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: layout.ErasedSubject(session, l.PartitionOf(session)), Data: raw}
	var ack *natsjs.PubAck
	err = link.Settle(ctx, l.Conn, func(ctx context.Context) (err error) {
		return l.Step(ctx, "mark", func(ctx context.Context) (err error) {
			ack, err = l.JS.PublishMsg(ctx, m, natsjs.WithExpectLastSequencePerSubject(e.At))
			return err
		})
	})
	if link.IsConflict(err) {
		return errMarkMoved
	}
	if err != nil {
		return fmt.Errorf("jetstream: erase: %w", err)
	}
	if err := l.Await(ctx, layout.SegmentStream(l.PartitionOf(session)), ack.Sequence); err != nil {
		return fmt.Errorf("jetstream: erase: %w", err)
	}
	e.At, e.Time = ack.Sequence, time.Now()
	return nil
}

// Change changes the mark of an erasure if f returns true, and returns the mark. It
// retries if another node was first, or if the server can't compare yet.
func (l *Store) Change(ctx context.Context, session string, f func(*Erasing) bool) (e *Erasing, err error) {
	for pause := link.MinRefusedPause; ; pause = min(2*pause, link.MaxRefusedPause) {
		if e, err = l.ErasingOf(ctx, session); err != nil || !f(e) {
			return e, err
		}
		if err = l.put(ctx, session, e); !errors.Is(err, errMarkMoved) {
			return e, err
		}
		if err := l.Rest(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// streams returns the streams from which an erasure removes messages.
func (e *Erasing) streams() (names []string) {
	for _, p := range e.Parts {
		if !slices.Contains(names, p.Stream) {
			names = append(names, p.Stream)
		}
	}
	return names
}

func (e *Erasing) NextRound() { e.Round = max(e.Round+1, uint64(time.Now().UnixNano())) }

// Want marks that the session with the given head must be erased.
func (l *Store) Want(ctx context.Context, session string, head uint64) error {
	_, err := l.Change(ctx, session, func(e *Erasing) bool {
		if e.Done { // of an earlier erasure: only its tombstone is left
			e.Removed = false
		}
		e.Head, e.Done, e.Told = head, false, false
		return true
	})
	return err
}

// Begin marks that the session has a tombstone. Errors: ErrSessionNotFound if the erasure has
// ended and that of a later session has begun.
func (l *Store) Begin(ctx context.Context, session string, tombstone uint64, parts []Part) (*Erasing, error) {
	ended := false
	e, err := l.Change(ctx, session, func(e *Erasing) bool {
		if ended = e.Tombstone > tombstone; ended {
			return false
		}
		if e.Tombstone == tombstone {
			wanted := 0 < e.Head && e.Head < tombstone // not a later session of the same id
			if wanted {
				e.Head = 0
			}
			return wanted
		}
		e.Head, e.Tombstone, e.Parts, e.Removed, e.Done, e.Told = 0, tombstone, Join(e.Parts, parts), false, false, false
		e.NextRound()
		return true
	})
	if ended {
		return nil, eventlog.ErrSessionNotFound
	}
	return e, err
}

// EndErasing marks that an erasure is done, and removes everything else that was stored
// for it. told: the caller reports that to a client. It reports whether this call has
// ended the erasure.
func (l *Store) EndErasing(ctx context.Context, session string, e *Erasing, told bool) (ended bool, err error) {
	parts := e.Parts
	now, err := l.Change(ctx, session, func(now *Erasing) bool {
		ended = false
		if now.At == 0 || now.Round != e.Round || now.Head > 0 || now.Done && (now.Told || !told) {
			return false
		}
		ended = !now.Done
		now.Parts, now.Removed, now.Done, now.Told = nil, true, true, now.Told || told
		return true
	})
	if err != nil || !now.Done {
		return false, err
	}
	if err := l.dropReports(ctx, session, parts); err != nil {
		return ended, err
	}
	return ended, l.TidyMark(ctx, session, now)
}

// TidyMark removes the earlier messages of a mark.
func (l *Store) TidyMark(ctx context.Context, session string, e *Erasing) error {
	p := l.PartitionOf(session)
	_, err := l.EraseSubject(ctx, layout.SegmentStream(p), layout.ErasedSubject(session, p), e.At-1)
	return err
}

// Join returns parts together with those of an unfinished erasure. Their ranges are not
// merged: a session that lives may have messages between them.
func Join(before, parts []Part) []Part {
	for _, b := range before {
		b.Last, b.Messages = 0, 0
		if !slices.Contains(parts, b) {
			parts = append(parts, b)
		}
	}
	return parts
}

// PartsOf returns the places of a session's messages. With a tombstone, the log's are those
// up to the tombstone; without one, they are those before the first existing message.
func (l *Store) PartsOf(ctx context.Context, session string, tombstone uint64) ([]Part, error) {
	p := l.PartitionOf(session)
	floor, err := l.Floor(ctx, session)
	if err != nil {
		return nil, err
	}
	parts := []Part{
		{Stream: layout.BlobStream, Subject: l.BlobPrefix(session) + ">"},
		{Stream: layout.SegmentStream(p), Subject: layout.SegmentSubject(session, p), Look: floor > 0 && l.Opts.Server != nil && !l.Scrubs(layout.SegmentStream(p))},
		{Stream: layout.SegmentStream(p), Subject: layout.FloorSubject(session, p)},
		{Stream: layout.LogStream(p), Subject: layout.LogSubject(session, p)},
	}
	if l.Opts.Beside != nil && l.Opts.Forget != nil {
		if stream, subject := l.Opts.Beside(session, p); stream != "" {
			parts = append(parts, Part{Stream: stream, Subject: subject})
		}
	}
	for i := range parts {
		b := &parts[i]
		// In this order: a message that is stored in between is of a session that is
		// created now.
		if b.UpTo, err = l.LastOf(ctx, b.Stream); err != nil {
			if !l.Owns(b.Stream) && errors.Is(err, natsjs.ErrStreamNotFound) { // Options.Beside has no stream for a new partition yet
				continue
			}
			return nil, err
		}
		if b.From, err = l.FirstFrom(ctx, b.Stream, b.Subject, 1); err != nil {
			return nil, err
		}
		b.Scrub = l.Scrubs(b.Stream) || !l.Owns(b.Stream) && l.Opts.Server != nil && l.Opts.Replicas > 1
		if tombstone == 0 && b.From > 0 {
			b.UpTo = b.From - 1
		}
	}
	log := &parts[3]
	if tombstone > 0 {
		log.UpTo = tombstone
	}
	if floor > 0 {
		parts[1].From = 0 // trimmed segments came before
	}
	if l.Opts.Server == nil {
		if log.Left, err = l.wasPurged(ctx, session, log.From); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// wasPurged reports whether the log has lost records of a session to a purge. It assumes
// so if the session's last segment can't be read.
func (l *Store) wasPurged(ctx context.Context, session string, begins uint64) (bool, error) {
	s, _, err := l.LastSegment(ctx, session)
	if errors.Is(err, wire.ErrDamaged) {
		return true, nil
	}
	if err != nil || s == nil {
		return false, err
	}
	return len(s.Records) > 0 && (begins == 0 || s.Records[0].Sequence < begins), nil
}

// ForgetErasing removes a mark and the servers' reports.
func (l *Store) ForgetErasing(ctx context.Context, session string, e *Erasing) error {
	p := l.PartitionOf(session)
	if err := l.dropReports(ctx, session, []Part{{Stream: layout.BlobStream}, {Stream: layout.SegmentStream(p)}, {Stream: layout.LogStream(p)}}); err != nil {
		return err
	}
	_, err := l.EraseSubject(ctx, layout.SegmentStream(p), layout.ErasedSubject(session, p), e.At)
	return err
}

// dropReports removes the reports about an erasure by servers with replicas of some
// streams.
func (l *Store) dropReports(ctx context.Context, session string, parts []Part) error {
	p := l.PartitionOf(session)
	servers, err := l.serversWith(ctx, &Erasing{Parts: parts})
	if err != nil {
		return err
	}
	said, err := l.reports(ctx, session, servers)
	if err != nil {
		return err
	}
	for server := range said {
		if _, err := l.EraseSubject(ctx, layout.SegmentStream(p), layout.ReportSubject(session, p, server), math.MaxUint64); err != nil {
			return err
		}
	}
	return nil
}

// reports returns, for each of some servers, the round for which it has last reported
// that nothing is left.
func (l *Store) reports(ctx context.Context, session string, servers []string) (map[string]uint64, error) {
	p := l.PartitionOf(session)
	said := map[string]uint64{}
	for _, server := range servers {
		m, err := l.LastMessage(ctx, layout.SegmentStream(p), layout.ReportSubject(session, p, server))
		if errors.Is(err, link.ErrNoMessage) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if said[server], err = strconv.ParseUint(string(m.Data), 10, 64); err != nil {
			return nil, fmt.Errorf("%w: report of an erasure: %w", wire.ErrDamaged, err)
		}
	}
	return said, nil
}

// Report stores that this process's server has nothing left of an erasure.
func (l *Store) Report(ctx context.Context, session string, e *Erasing) error {
	p := l.PartitionOf(session)
	m := &nats.Msg{Subject: layout.ReportSubject(session, p, l.Opts.Server.Name()), Data: strconv.AppendUint(nil, e.Round, 10), Header: nats.Header{}}
	if _, err := l.StoreMessage(ctx, m); err != nil {
		return fmt.Errorf("jetstream: erase: %w", err)
	}
	return nil
}

// serversWith returns the names of the servers that have replicas of an erasure's
// streams.
func (l *Store) serversWith(ctx context.Context, e *Erasing) ([]string, error) {
	all := map[string]bool{}
	for _, p := range e.Parts {
		s, err := l.FindStream(ctx, p.Stream)
		if err != nil {
			return nil, err
		}
		for _, name := range streams.ServersOf(s.CachedInfo()) {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// mostTaken bounds how many single messages a mark names.
const mostTaken = 1000

// Wipe is WipeAll of one message.
func (l *Store) Wipe(ctx context.Context, session, stream, subject string, at uint64) error {
	return l.WipeAll(ctx, session, []Part{Single(stream, subject, at)})
}

// Single is the part that WipeAll takes for one message.
func Single(stream, subject string, at uint64) Part {
	return Part{Stream: stream, Subject: subject, From: at, UpTo: at, Scrub: true, Taken: true}
}

// WipeAll removes single messages for good that arrived too late for an erasure of their
// session. The mark names the messages first, so that a process that dies in between leaves
// nothing unknown. A message that no longer exists reopens no erasure: another node has
// named it, or the erasure has removed it.
func (l *Store) WipeAll(ctx context.Context, session string, messages []Part) error {
	var named []Part
	for _, m := range messages {
		_, err := l.MessageAt(ctx, m.Stream, m.UpTo)
		if errors.Is(err, link.ErrNoMessage) && l.Leads(ctx, m.Stream) {
			continue
		}
		if err != nil && !errors.Is(err, link.ErrNoMessage) {
			return err
		}
		if l.Scrubs(m.Stream) {
			named = append(named, m)
		} else if err := l.SecureDelete(ctx, m.Stream, m.UpTo); err != nil {
			return err
		}
	}
	if len(named) == 0 {
		return nil
	}
	all := named
	e, err := l.Change(ctx, session, func(e *Erasing) bool {
		named = all[:min(len(all), max(mostTaken-len(e.Parts), 0))]
		if len(named) == 0 {
			return false
		}
		e.Parts, e.Removed, e.Done = append(e.Parts, named...), false, false
		e.NextRound()
		return true
	})
	if err != nil {
		return err
	}
	for _, m := range named {
		if err := l.Remove(ctx, m.Stream, m.UpTo); err != nil {
			return err
		}
	}
	if len(named) > 0 && e.Head == 0 { // otherwise an erasure that has no tombstone yet will remove the rest
		_, err = l.RemoveAll(ctx, session, e)
	}
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) { // another node has ended it
		return err
	}
	if len(named) < len(all) {
		return fmt.Errorf("jetstream: session %q: more than %d messages wait to be overwritten", session, mostTaken)
	}
	return nil
}

// position records the state of a part's stream.
func (l *Store) position(ctx context.Context, p *Part) error {
	s, err := l.FindStream(ctx, p.Stream)
	if err != nil {
		return err
	}
	info := s.CachedInfo()
	p.Last, p.Messages, p.Replicas = info.State.LastSeq, info.State.Msgs, info.Config.Replicas
	return nil
}
