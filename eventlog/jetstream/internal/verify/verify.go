package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Verifier checks a log.
type Verifier struct {
	*store.Store
	mostMissing int // maxMissing
}

func New(records *store.Store) *Verifier { return &Verifier{records, maxMissing} }

// Verify implements [jetstream.Log.Verify].
func (l *Verifier) Verify(ctx context.Context, session string, found func(integrity.Finding)) (records int, err error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return 0, err
	}
	v := &verification{
		l: l, ctx: ctx, session: session, stream: stream, subject: subject, found: found,
		segments: layout.SegmentStream(l.PartitionOf(session)),
		blobs:    map[string]bool{},
	}
	v.log.damaged = map[uint64]bool{}
	if more, err := v.begin(); err != nil || !more {
		return 0, err
	}
	records, err = integrity.Check(session, v.floor > 0, v.records(), v.report)
	if err != nil {
		return records, err
	}
	return records, v.end()
}

// verification is the walk over a session.
type verification struct {
	l        *Verifier
	ctx      context.Context
	session  string
	stream   string // of the log
	subject  string
	segments string // the stream of segments
	found    func(integrity.Finding)
	erased   bool // the session was erased since the walk began

	floor uint64 // retention has removed the records up to here
	begun uint64 // the log stream's first sequence
	upTo  uint64 // the walk ends here
	at    uint64 // the last record that was read
	// purged: the log stream began earlier when the walk began.
	purged bool

	log struct {
		counted, read uint64 // messages, as counted by the server and by the walk
		last          uint64 // record
		inBatch       bool   // the last record's batch continues
		// damaged are the messages that can't be parsed.
		damaged map[uint64]bool
		// lostFrom and lostTo bound records that only segments have.
		lostFrom, lostTo uint64
		incomplete       bool // it was reported that some are lost
	}
	seg   sealedWalk
	blobs map[string]bool // hashes that records name
}

// tell reports a finding. A message that is missing because the session is erased during
// the walk is no finding.
func (v *verification) tell(code integrity.Code, seq uint64, format string, args ...any) {
	v.report(integrity.Finding{Code: code, Session: v.session, Sequence: seq, Detail: fmt.Sprintf(format, args...)})
}

func (v *verification) report(f integrity.Finding) {
	if !f.Code.IsNote() && v.erasedMeanwhile() {
		return
	}
	v.found(f)
}

func (v *verification) erasedMeanwhile() bool {
	if v.erased {
		return true
	}
	last, err := v.l.LastMessage(v.ctx, v.stream, v.subject)
	switch {
	case last.Sequence > 0:
		v.erased = wire.IsErased(last.Header)
	case errors.Is(err, link.ErrNoMessage) && v.log.counted > 0:
		log, err := v.l.streamState(v.ctx, v.stream, v.subject)
		v.erased = err == nil && log.count() == 0 && log.First <= v.log.last
	}
	return v.erased
}

// begin reports whether there is anything to check.
func (v *verification) begin() (bool, error) {
	segments, err := v.l.streamState(v.ctx, v.segments, v.segmentSubject())
	if err != nil {
		return false, err
	}
	v.seg.counted = segments.count()
	// Counted before the end is read: every counted message must be read.
	log, err := v.l.streamState(v.ctx, v.stream, v.subject)
	if err != nil {
		return false, err
	}
	v.begun, v.upTo, v.log.counted = log.First, log.Last, log.count()
	last, err := v.l.LastMessage(v.ctx, v.stream, v.subject)
	switch {
	case last.Sequence > 0:
		v.upTo = last.Sequence
	case !errors.Is(err, link.ErrNoMessage):
		return false, err
	}
	if wire.IsErased(last.Header) {
		v.tell(integrity.FoundErasing, last.Sequence, "an erasure has begun here and not ended: erase the session again")
		return false, nil
	}
	switch v.floor, err = v.l.Floor(v.ctx, v.session); {
	case errors.Is(err, eventlog.ErrDamaged):
		v.tell(integrity.FoundFloor, 0, "%v", err)
	case err != nil:
		return false, err
	}
	switch {
	case v.log.counted > 0 || v.seg.counted > 0:
		return true, nil
	case v.floor > 0:
		v.tell(integrity.FoundEndLost, v.floor+1, "retention has removed the records up to %d, and nothing of what followed is there", v.floor)
	default:
		v.tell(integrity.FoundSessionMissing, 0, "the session has no records")
	}
	return false, v.checkUnusedBlobs()
}

// records yields the session's records from segments and log, each once, and reports what
// is wrong between them.
func (v *verification) records() iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		err := v.merge(func(r eventlog.Record) bool { return yield(r, nil) })
		if err != nil && !errors.Is(err, link.ErrStopped) {
			yield(eventlog.Record{}, err)
		}
	}
}

// merge reads segments and log in parallel.
func (v *verification) merge(yield func(eventlog.Record) bool) error {
	sealed, stop := pull(v.sealedRecords())
	defer stop()
	logged, stop := pull(v.loggedRecords())
	defer stop()
	for {
		s, inSegment, err := sealed.peek()
		if err != nil {
			return err
		}
		r, inLog, err := logged.peek()
		if err != nil {
			return err
		}
		switch {
		case !inSegment && !inLog:
			v.tellLost(true)
			return nil
		case !inLog || inSegment && s.Sequence < r.Sequence:
			sealed.skip()
			if newer, err := v.onlySealed(s); newer || err != nil {
				sealed.end()
				if err != nil {
					return err
				}
				continue
			}
			err = v.take(s, yield)
		case !inSegment || r.Sequence < s.Sequence:
			logged.skip()
			if inSegment && r.Sequence > s.Previous {
				v.tell(integrity.FoundSegmentDiffers, r.Sequence, "the log has the record, the segments lack it")
			}
			v.inLog(r)
			err = v.take(r, yield)
		default:
			sealed.skip()
			logged.skip()
			if !wire.Same(r, s) {
				v.tell(integrity.FoundSegmentDiffers, r.Sequence, "log and segment hold different records")
			}
			v.inLog(r)
			err = v.take(r, yield)
		}
		if err != nil {
			return err
		}
	}
}

// loggedRecords yields the log stream's records.
func (v *verification) loggedRecords() iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		for m, err := range v.l.allMessages(v.ctx, v.stream, v.subject) {
			if m.Sequence > v.upTo {
				return
			}
			var r wire.Stored
			if err == nil {
				r, err = wire.RecordOf(m.Header, m.Data)
			}
			if err == nil && r.Kind == "" && isCut(m) {
				err = fmt.Errorf("%w: its envelope is cut", wire.ErrDamaged)
			}
			if errors.Is(err, eventlog.ErrDamaged) {
				v.log.read++
				v.log.damaged[m.Sequence] = true
				v.tell(integrity.FoundMessage, m.Sequence, "the message can't be taken apart: %v", err)
				continue
			}
			if err == nil {
				v.log.read++
				v.log.inBatch = wire.First(m.Header, wire.HeaderBatchID) != "" && wire.First(m.Header, wire.HeaderBatchCommit) == ""
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// isCut reports whether a message without a kind has, or had, one even so: the server
// does not check the length of the headers.
func isCut(m wire.Message) bool {
	for name, values := range m.Header {
		if name == wire.HeaderEnvelope && strings.HasPrefix(values[0], ".") {
			continue // an imported record that helixd had not written
		}
		if name == wire.HeaderEnvelope || strings.HasPrefix(name, "Helix-") {
			return true
		}
	}
	return bytes.Contains(m.Data, []byte("\n"+wire.HeaderEnvelope+": ")) || bytes.Contains(m.Data, []byte("\n"+wire.HeaderKind+": "))
}

func (v *verification) inLog(r wire.Stored) {
	v.tellLost(false)
	v.log.last = r.Sequence
}

// onlySealed checks a record that a segment has and the log has not. It returns true if
// the record is newer than the walk.
func (v *verification) onlySealed(s wire.Stored) (newer bool, err error) {
	if s.Sequence < v.begun || v.log.damaged[s.Sequence] {
		return false, nil // purged, or already reported
	}
	if v.log.lostFrom == 0 {
		if s.Sequence > v.upTo {
			last, err := v.l.LastMessage(v.ctx, v.stream, v.subject)
			if last.Sequence >= s.Sequence {
				return true, nil
			}
			if err != nil && !errors.Is(err, link.ErrNoMessage) && last.Sequence == 0 {
				return false, err
			}
		}
		// After the last message: messages that existed before a purge, and don't now,
		// were purged.
		log, err := v.l.streamState(v.ctx, v.stream, v.subject)
		if err != nil {
			return false, err
		}
		if log.First != v.begun {
			v.begun, v.purged = log.First, true
		}
		if s.Sequence < v.begun {
			return false, nil
		}
		v.log.lostFrom = s.Sequence
	}
	v.log.lostTo = s.Sequence
	return false, nil
}

// tellLost reports records that only segments have, up to where the log continues, or to
// its end.
func (v *verification) tellLost(end bool) {
	from, to := v.log.lostFrom, v.log.lostTo
	if from == 0 {
		return
	}
	v.log.lostFrom, v.log.incomplete = 0, true
	if end && v.log.last > 0 {
		v.tell(integrity.FoundEndLost, from, "the log ends at %d, segments hold records up to %d: readers and writers take the log's end for the session's", v.log.last, to)
		return
	}
	v.tell(integrity.FoundGap, from, "the log has lost its records from %d to %d; segments have them, readers get them from there", from, to)
}

// take yields the next record.
func (v *verification) take(r wire.Stored, yield func(eventlog.Record) bool) error {
	if err := v.checkLink(r); err != nil {
		return err
	}
	if r.Blob != "" {
		payload, err := v.checkBlob(r)
		if err != nil {
			return err
		}
		if payload != nil {
			r.Payload = payload
		}
	}
	if !yield(r.Record) {
		return link.ErrStopped
	}
	return nil
}

// checkLink checks whether the record before r is the one that r names.
func (v *verification) checkLink(r wire.Stored) error {
	before := v.at
	v.at = r.Sequence
	switch {
	case !r.Linked && r.Kind != "":
		v.tell(integrity.FoundLink, r.Sequence, "the record was appended without a comparison with the session's last record")
		return nil
	case !r.Linked, r.Previous == before, before == 0 && r.Previous <= v.floor, v.log.damaged[r.Previous]:
		return nil
	case r.Previous < before:
		v.tell(integrity.FoundLink, r.Sequence, "the record was appended after %d, though %d was there", r.Previous, before)
		return nil
	}
	subject, err := v.l.subjectAt(v.ctx, v.stream, r.Previous)
	if err != nil {
		return err
	}
	if subject != "" && subject != v.subject {
		v.tell(integrity.FoundLink, r.Sequence, "the record was appended without a comparison with the session's last record: after %d, which is another session's", r.Previous)
		return nil
	}
	v.log.incomplete = true
	v.tell(integrity.FoundGap, r.Previous, "the record is lost, and what is between %d and it: %d follows on it; neither log nor segments have it", before, r.Sequence)
	return nil
}

// end compares the records that were read with everything else that names records of the
// session.
func (v *verification) end() error {
	before, err := v.l.streamState(v.ctx, v.stream, v.subject)
	if err != nil {
		return err
	}
	_, unread := v.l.LastMessage(v.ctx, v.stream, v.subject)
	log, err := v.l.streamState(v.ctx, v.stream, v.subject)
	if err != nil {
		return err
	}
	switch {
	case v.purged || log.First != v.begun || v.log.incomplete: // or already reported
	case before.count() > 0 && errors.Is(unread, link.ErrNoMessage):
		v.tell(integrity.FoundEndLost, v.at+1, "the server counts %d records in the log and can't read the last one; the last that it can read is %d", log.count(), v.log.last)
	case v.log.read < v.log.counted:
		v.tell(integrity.FoundUnreadable, 0, "the server counts %d records in the log and yields %d", v.log.counted, v.log.read)
	}
	if v.log.inBatch && v.log.last == v.upTo {
		if err := v.checkBatchEnd(log.Last); err != nil {
			return err
		}
	}
	v.seg.end(v)
	return v.checkUnusedBlobs()
}

// checkBatchEnd checks what must follow a record that is not the last of its batch: the
// rest of the batch, which can be other sessions'.
func (v *verification) checkBatchEnd(streamEnds uint64) error {
	next := v.log.last + 1
	if next > streamEnds {
		v.tell(integrity.FoundEndLost, next, "the last record's batch is not whole, and the stream ends there")
		return nil
	}
	subject, err := v.l.subjectAt(v.ctx, v.stream, next)
	if err == nil && subject == "" {
		v.tell(integrity.FoundEndUnsure, next, "the record that was stored in one batch with the last record and right after it is missing: it was an erased session's, or this one's")
	}
	return err
}

// pulled is an iterator with one item of lookahead.
type pulled struct {
	next func() (wire.Stored, error, bool)
	r    wire.Stored
	err  error
	more bool
	have bool
}

func pull(seq iter.Seq2[wire.Stored, error]) (*pulled, func()) {
	next, stop := iter.Pull2(seq)
	return &pulled{next: next}, stop
}

func (p *pulled) peek() (r wire.Stored, more bool, err error) {
	if !p.have {
		p.r, p.err, p.more = p.next()
		p.have = true
	}
	return p.r, p.more, p.err
}

func (p *pulled) skip() { p.have = false }

// end makes it yield nothing more.
func (p *pulled) end() { *p = pulled{have: true} }
