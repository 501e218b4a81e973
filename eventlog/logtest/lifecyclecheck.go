package logtest

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// lifetime is a session from its creation to its erasure.
type lifetime struct {
	records    []StoredRecord
	tombstoned bool
}

func (t *lifetime) head() uint64 { return t.records[len(t.records)-1].Sequence }

// lifetimes says which sessions there have been under an id, by what was stored. A record
// that follows none of the session that was there is of none.
func (s *life) lifetimes(session string, stored []StoredRecord) (all []*lifetime) {
	var now *lifetime
	tombstone := uint64(0)
	for _, r := range stored {
		switch {
		case now == nil && r.Created && r.Since < tombstone: // it arrived late
		case now == nil && r.Previous == 0 && !r.Tombstone:
			now = &lifetime{records: []StoredRecord{r}}
			all = append(all, now)
		case now == nil: // it arrived late
		case r.Previous != now.head():
			s.failf("%s: record %d was stored after %d, the head was %d", session, r.Sequence, r.Previous, now.head())
		case r.Tombstone:
			now.tombstoned = true
			now, tombstone = nil, r.Sequence
		default:
			now.records = append(now.records, r)
		}
	}
	return all
}

func (s *life) check() {
	payloads := map[string]*lifeAppend{}
	for _, a := range slices.Concat(s.past, s.appends) {
		payloads[a.id] = a
	}
	for _, session := range s.sessions {
		if s.Finish != nil {
			if err := s.Finish(s.ctx, session); err != nil {
				s.failf("%s: finish: %w", session, err)
			}
		}
		stored := s.Stored(session)
		all := s.lifetimes(session, stored)
		for _, a := range s.appends {
			if a.session == session && a.fate == acked {
				s.checkAcked(a, all)
			}
		}
		for _, r := range s.reads {
			if r.session == session {
				s.checkRead(r, all, stored, payloads)
			}
		}
		var now *lifetime
		if n := len(all); n > 0 && !all[n-1].tombstoned {
			now = all[n-1]
		}
		for node := range s.Nodes {
			s.checkNow(node, session, now, payloads)
		}
		first := uint64(math.MaxUint64)
		if now != nil {
			first = now.records[0].Sequence
		}
		unsure := slices.ContainsFunc(s.appends, func(a *lifeAppend) bool {
			return a.session == session && a.fate == unknown
		})
		s.checkLeft(session, first, unsure)
		for node := range s.Nodes { // an hour later
			s.checkNow(node, session, now, payloads)
		}
		if now == nil {
			if !unsure {
				continue
			}
			// A payload may be left of an append that might have created the session. It
			// goes with the next erasure, or after a day.
			if _, err := s.Nodes[0].Append(s.ctx, session, 0, []eventlog.Entry{Text(session, "last")}); err != nil {
				s.failf("%s: create: %w", session, err)
			}
		}
		if e, err := s.Nodes[0].Erase(s.ctx, session); err != nil || e.Pending && (e.Left == "" || s.Secrets != nil) {
			s.failf("%s: the last erasure: %+v, %v", session, e, err)
		}
		s.checkLeft(session, math.MaxUint64, false)
	}
	if len(s.errs) == 0 {
		return
	}
	for _, session := range s.sessions {
		for _, r := range s.Stored(session) {
			s.failf("stored of %s: %+v", session, r)
		}
	}
}

func (s *life) checkAcked(a *lifeAppend, all []*lifetime) {
	for _, t := range all {
		i := slices.IndexFunc(t.records, func(r StoredRecord) bool { return r.Writer == a.id })
		if i < 0 {
			continue
		}
		for k := range a.payloads {
			if i+k >= len(t.records) || t.records[i+k].Writer != a.id || t.records[i+k].Ordinal != uint64(k+1) {
				s.failf("append %s of %s is not whole", a.id, a.session)
				return
			}
		}
		if last := t.records[i+len(a.payloads)-1].Sequence; last != a.last {
			s.failf("append %s of %s was acknowledged as %d and is %d", a.id, a.session, a.last, last)
		}
		return
	}
	s.failf("append %s of %s, acknowledged as %d, is of no session", a.id, a.session, a.last)
}

// checkNow compares what a node reads with what there is.
func (s *life) checkNow(node int, session string, now *lifetime, payloads map[string]*lifeAppend) {
	log := s.Nodes[node]
	head, err := log.Head(s.ctx, session)
	if now == nil {
		if !errors.Is(err, eventlog.ErrSessionNotFound) {
			s.failf("node %d: %s is there, with head %d: %v", node, session, head, err)
		}
		return
	}
	if err != nil || head != now.head() {
		s.failf("node %d: %s has head %d (%v), not %d", node, session, head, err, now.head())
		return
	}
	floor := uint64(0)
	got, err := collectErr(log.Read(s.ctx, session, 0, 0))
	if trimmed, ok := errors.AsType[*eventlog.TrimmedError](err); ok {
		floor = trimmed.Floor
		got, err = collectErr(log.Read(s.ctx, session, floor, 0))
	}
	most := uint64(0)
	for _, t := range s.trims {
		if t.session == session && t.floor >= now.records[0].Sequence {
			most = max(most, t.floor)
		}
	}
	if floor < most {
		s.failf("node %d: %s has the floor %d, and it was %d before", node, session, floor, most)
	}
	if err != nil {
		s.failf("node %d: read %s from %d: %w", node, session, floor, err)
		return
	}
	want := slices.DeleteFunc(slices.Clone(now.records), func(r StoredRecord) bool { return r.Sequence <= floor })
	if len(got) != len(want) {
		s.failf("node %d: %s has %d records after %d, not %d", node, session, len(got), floor, len(want))
		return
	}
	for i := range got {
		s.checkRecord(session, got[i], want[i], payloads)
	}
}

func (s *life) checkRecord(session string, got eventlog.Record, want StoredRecord, payloads map[string]*lifeAppend) {
	if got.Sequence != want.Sequence || got.Writer != want.Writer || got.Ordinal != want.Ordinal {
		s.failf("%s: record %d (%s.%d) is read where %d (%s.%d) is", session, got.Sequence, got.Writer, got.Ordinal, want.Sequence, want.Writer, want.Ordinal)
		return
	}
	if a := payloads[want.Writer]; a == nil || want.Ordinal == 0 || want.Ordinal > uint64(len(a.payloads)) ||
		!bytes.Equal(a.payloads[want.Ordinal-1], got.Payload) {
		s.failf("%s: record %d has another payload", session, got.Sequence)
	}
}

// checkRead: what was read are successive records of one session, from the first one after
// the cursor on.
func (s *life) checkRead(r *lifeRead, all []*lifetime, stored []StoredRecord, payloads map[string]*lifeAppend) {
	var of *lifetime
	at := -1
	if len(r.got) > 0 {
		for _, t := range all {
			if i := slices.IndexFunc(t.records, func(x StoredRecord) bool { return x.Sequence == r.got[0].Sequence }); i >= 0 {
				of, at = t, i
			}
		}
		if of == nil {
			s.failf("%s of %s from %d got %d, a record of no session", r.what, r.session, r.from, r.got[0].Sequence)
			return
		}
		if at > 0 && of.records[at-1].Sequence > r.from || r.from > 0 && at == 0 {
			s.failf("%s of %s from %d begins with %d", r.what, r.session, r.from, r.got[0].Sequence)
		}
	}
	for i, rec := range r.got {
		if at+i >= len(of.records) {
			s.failf("%s of %s from %d got %d, which was not stored", r.what, r.session, r.from, rec.Sequence)
			return
		}
		s.checkRecord(r.session, rec, of.records[at+i], payloads)
	}
	if r.err != nil || !r.whole && r.upTo == 0 {
		return
	}
	then := s.lifetimes(r.session, stored[:r.before])
	if len(then) == 0 || then[len(then)-1].tombstoned {
		return
	}
	t := then[len(then)-1]
	if of != nil && of.records[0].Sequence != t.records[0].Sequence {
		return // it is of a later one
	}
	head := t.head()
	if r.upTo > 0 {
		head = 0
		for _, x := range t.records {
			if x.Sequence <= r.upTo {
				head = x.Sequence
			}
		}
	}
	if last := len(r.got) - 1; head > r.from && (last < 0 || r.got[last].Sequence < head) {
		// A session that is erased and created again meanwhile has no record up to there.
		if i := slices.IndexFunc(all, func(x *lifetime) bool { return x.records[0].Sequence == t.records[0].Sequence }); r.upTo > 0 && last < 0 && all[i].tombstoned {
			return
		}
		s.failf("%s of %s from %d is not complete: %d records, and the head was %d", r.what, r.session, r.from, len(r.got), head)
	}
}

// checkLeft: nothing is left of what was erased.
func (s *life) checkLeft(session string, first uint64, unsure bool) {
	if s.Left == nil {
		return
	}
	left, err := s.Left(s.ctx, session, first, !unsure)
	if err != nil {
		s.failf("%s: %w", session, err)
	}
	for _, what := range left {
		s.failf("%s was erased before %d, and there is %s", session, first, what)
	}
}
