package projector

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"sort"

	"github.com/helixd/helixd/eventlog"
)

// How long a session remembers idempotency keys, counted in later appends with a key.
// These limits bound the state and the cost of a request.
const (
	// LeastKnownAppends is how many of the last appends with a key are kept at least: a
	// repetition of one gets its first answer.
	LeastKnownAppends = 4096
	// LeastOldKeys is how many earlier keys are at least still known to have been used.
	LeastOldKeys = 128 << 10

	// appendBlock bounds how many appends a clone copies.
	appendBlock = 128
	// oldBlock is how many known appends become old keys at once.
	oldBlock = LeastKnownAppends
)

// Append is what an append with an idempotency key wrote. Its records have no gaps
// between them.
type Append struct {
	Digest        string `json:"digest"` // of the request
	FirstSequence uint64 `json:"firstSequence"`
	LastSequence  uint64 `json:"lastSequence"`
	Count         int    `json:"count"`
}

// Appends are the last appends with an idempotency key. As JSON they are an object
// by key.
type Appends struct {
	Full []map[string]Append // of appendBlock each, oldest first; they never change
	Open []KeyedAppend       // the last ones, up to appendBlock
}

// KeyedAppend is an append and its key.
type KeyedAppend struct {
	Key    string
	Append Append
}

// OldKeys are the fingerprints of the keys that precede [Appends]: sorted blocks
// of oldBlock, oldest first, which never change.
type OldKeys [][]byte

// Get returns the append with a key.
func (a Appends) Get(key string) (Append, bool) {
	for i := len(a.Open) - 1; i >= 0; i-- {
		if a.Open[i].Key == key {
			return a.Open[i].Append, true
		}
	}
	for i := len(a.Full) - 1; i >= 0; i-- {
		if x, ok := a.Full[i][key]; ok {
			return x, true
		}
	}
	return Append{}, false
}

// IsZero reports whether there are none.
func (a Appends) IsZero() bool { return len(a.Open) == 0 }

// MarshalJSON implements json.Marshaler.
func (a Appends) MarshalJSON() ([]byte, error) {
	all := map[string]Append{}
	for _, m := range a.Full {
		maps.Copy(all, m)
	}
	for _, x := range a.Open {
		all[x.Key] = x.Append
	}
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Appends) UnmarshalJSON(b []byte) error {
	var all map[string]Append
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*a = Appends{}
	list := make([]KeyedAppend, 0, len(all))
	for key, x := range all {
		list = append(list, KeyedAppend{key, x})
	}
	slices.SortFunc(list, func(x, y KeyedAppend) int { return cmp.Compare(x.Append.FirstSequence, y.Append.FirstSequence) })
	for _, x := range list {
		a.add(x)
	}
	return nil
}

// add adds an append.
func (a *Appends) add(x KeyedAppend) {
	if len(a.Open) == appendBlock {
		full := make(map[string]Append, appendBlock)
		for _, x := range a.Open {
			full[x.Key] = x.Append
		}
		a.Full, a.Open = append(a.Full, full), nil
	}
	a.Open = append(a.Open, x)
}

// clone shares the parts that never change.
func (a Appends) clone() Appends {
	return Appends{Full: slices.Clip(a.Full), Open: slices.Clone(a.Open)}
}

// Has reports whether a key is one of the old ones. The probability that two keys have
// the same fingerprint is 1 in 10^14.
func (o OldKeys) Has(key string) bool {
	want := fingerprint(key)
	return slices.ContainsFunc(o, func(block []byte) bool {
		n := len(block) / 8
		i := sort.Search(n, func(i int) bool { return binary.BigEndian.Uint64(block[8*i:]) >= want })
		return i < n && binary.BigEndian.Uint64(block[8*i:]) == want
	})
}

func fingerprint(key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(key))
	return h.Sum64()
}

// noteAppend records an append with a key (see eventlog.KeyedWriter). The first append
// with a key counts.
func (t *Tree) noteAppend(r eventlog.Record) {
	key, digest, ok := eventlog.ParseKeyedWriter(r.Writer)
	if !ok {
		return
	}
	if n := len(t.Appends.Open); n > 0 && t.Appends.Open[n-1].Key == key {
		if a := &t.Appends.Open[n-1].Append; a.Digest == digest && r.Ordinal == uint64(a.Count)+1 {
			a.LastSequence = r.Sequence
			a.Count++
		}
		return
	}
	if r.Ordinal != 1 {
		return
	}
	if _, known := t.Appends.Get(key); known {
		return
	}
	t.Appends.add(KeyedAppend{key, Append{Digest: digest, FirstSequence: r.Sequence, LastSequence: r.Sequence, Count: 1}})
	t.forgetAppends()
}

// forgetAppends turns the oldest appends into old keys, and removes the oldest of these.
func (t *Tree) forgetAppends() {
	const blocks = oldBlock / appendBlock
	if len(t.Appends.Full) < 2*blocks {
		return
	}
	prints := make([]uint64, 0, oldBlock)
	for _, m := range t.Appends.Full[:blocks] {
		for key := range m {
			prints = append(prints, fingerprint(key))
		}
	}
	slices.Sort(prints)
	old := make([]byte, 0, 8*len(prints))
	for _, p := range prints {
		old = binary.BigEndian.AppendUint64(old, p)
	}
	t.Appends.Full = slices.Clone(t.Appends.Full[blocks:])
	t.OldKeys = append(t.OldKeys, old)
	if more := len(t.OldKeys) - LeastOldKeys/oldBlock; more > 0 {
		t.OldKeys = slices.Clone(t.OldKeys[more:])
	}
}
