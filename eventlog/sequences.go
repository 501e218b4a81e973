package eventlog

import "sort"

// Sequences says which sequences the records of a session have in another log:
// those of an import, so far. It holds 24 bytes for each stretch of neighbours
// that are neighbours in both.
type Sequences struct{ stretches []stretch }

type stretch struct{ old, new, count uint64 }

// add notes a record, after all that are known.
func (s *Sequences) add(old, new uint64) {
	if n := len(s.stretches); n > 0 {
		last := &s.stretches[n-1]
		if old == last.old+last.count && new == last.new+last.count {
			last.count++
			return
		}
	}
	s.stretches = append(s.stretches, stretch{old, new, 1})
}

// UpTo maps a cursor: it returns the new sequence of the last record whose old
// one is at most n, 0 if there is none.
func (s *Sequences) UpTo(n uint64) uint64 {
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].old > n })
	if i == 0 {
		return 0
	}
	at := s.stretches[i-1]
	return at.new + min(n-at.old, at.count-1)
}

// From maps the begin of a range: it returns the new sequence of the first
// record whose old one is at least n, 0 if there is none.
func (s *Sequences) From(n uint64) uint64 {
	i := sort.Search(len(s.stretches), func(i int) bool { return s.stretches[i].old+s.stretches[i].count > n })
	if i == len(s.stretches) {
		return 0
	}
	at := s.stretches[i]
	return at.new + max(n, at.old) - at.old
}
