package projector

import "github.com/helixd/helixd/eventlog"

// Append is what an append with an idempotency key wrote. Its records lie
// without gaps.
type Append struct {
	Digest        string `json:"digest"` // of what was asked for
	FirstSequence uint64 `json:"firstSequence"`
	LastSequence  uint64 `json:"lastSequence"`
	Count         int    `json:"count"`
}

// noteAppend remembers a record of an append with a key (see
// eventlog.KeyedWriter). The first append with a key is the one that counts.
func (t *Tree) noteAppend(r eventlog.Record) {
	key, digest, ok := eventlog.ParseKeyedWriter(r.Writer)
	if !ok {
		return
	}
	a, known := t.Appends[key]
	switch {
	case !known && r.Ordinal == 1:
		a = Append{Digest: digest, FirstSequence: r.Sequence}
	case !known, a.Digest != digest, r.Ordinal != uint64(a.Count)+1:
		return
	}
	a.LastSequence = r.Sequence
	a.Count++
	if t.Appends == nil {
		t.Appends = map[string]Append{}
	}
	t.Appends[key] = a
}
