// Package durable folds the facts of a durable stream: its configuration, its end, its
// producers and its forks. It is pure, and keeps none of the stream's data.
package durable

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Bounds of what a stream's state has.
const (
	// MaxProducers is how many producers a stream remembers at most. Beyond it, it forgets
	// the fourth of them that has been silent for longest: a repetition of their last request
	// would be appended again.
	MaxProducers = 4096
	// MaxForks is how many forks a stream may have.
	MaxForks = 1000
)

// Stream is the state of a durable stream. Times are in milliseconds since the epoch.
type Stream struct {
	ContentType string              `json:"contentType"`
	TTL         *int64              `json:"ttl,omitempty"`       // in seconds
	ExpiresAt   string              `json:"expiresAt,omitempty"` // RFC 3339
	Source      *fact.DurableSource `json:"source,omitempty"`
	Created     uint64              `json:"created"` // the sequence of its configuration
	UsedAt      int64               `json:"usedAt"`  // when it was last read or written, as far as recorded
	// Position is how much it has, in bytes or messages; Sequence is that of the record
	// whose data is the last.
	Position int64  `json:"position"`
	Sequence uint64 `json:"sequence"`
	Closed   bool   `json:"closed,omitempty"`
	// ClosedBy is the producer's request that has closed it; nil: another one.
	ClosedBy  *fact.DurableProducer `json:"closedBy,omitempty"`
	WriterSeq string                `json:"writerSeq,omitempty"` // the last one
	Producers map[string]Producer   `json:"producers,omitempty"` // by id
	// Forks are those that need its data, by ref.
	Forks   map[string]Fork `json:"forks,omitempty"`
	Deleted bool            `json:"deleted,omitempty"` // it remains for its forks only
}

// Producer is the last request of a producer that was accepted.
type Producer struct {
	Epoch int64  `json:"epoch"`
	Seq   int64  `json:"seq"`
	At    uint64 `json:"at"` // the sequence of its record
}

// Fork is a stream that continues another one.
type Fork struct {
	Stream string `json:"stream"` // its log
	Since  int64  `json:"since"`  // when it was announced, before it was created
}

// Apply folds a record into the state of a stream, which is nil before its configuration. It
// returns the reason if the record can't be used.
func Apply(s *Stream, r eventlog.Record, f fact.Fact) (after *Stream, problem string) {
	created, first := f.(*fact.DurableCreated)
	switch {
	case first && s != nil:
		return s, "the stream is configured already"
	case first:
		return begin(r, created), ""
	case s == nil:
		return nil, "the stream is not configured yet"
	}
	switch f := f.(type) {
	case *fact.DurableAppended:
		return s, s.append(r, f)
	case *fact.DurableChanged:
		s.change(f)
	}
	return s, ""
}

func begin(r eventlog.Record, f *fact.DurableCreated) *Stream {
	s := &Stream{
		ContentType: f.ContentType, TTL: f.TTL, ExpiresAt: f.ExpiresAt, Source: f.Source, Created: r.Sequence, UsedAt: f.Timestamp,
	}
	if f.Source != nil {
		s.Position, s.Sequence = f.Source.Position, f.Source.Sequence
	}
	return s
}

func (s *Stream) append(r eventlog.Record, f *fact.DurableAppended) string {
	switch {
	case s.Closed:
		return "the stream is closed"
	case f.Position != s.Position:
		return "its position is not the end of the stream"
	}
	if n := f.Size(); n > 0 {
		s.Position, s.Sequence = s.Position+n, r.Sequence
	}
	if f.WriterSeq != "" {
		s.WriterSeq = f.WriterSeq
	}
	if p := f.Producer; p != nil {
		s.remember(p.ID, Producer{Epoch: p.Epoch, Seq: p.Seq, At: r.Sequence})
	}
	if f.Closes {
		s.Closed, s.ClosedBy = true, f.Producer
	}
	s.UsedAt = max(s.UsedAt, f.Timestamp)
	return ""
}

func (s *Stream) remember(id string, p Producer) {
	if s.Producers == nil {
		s.Producers = map[string]Producer{}
	}
	s.Producers[id] = p
	if len(s.Producers) <= MaxProducers {
		return
	}
	ids := slices.SortedFunc(maps.Keys(s.Producers), func(a, b string) int { return cmp.Compare(s.Producers[a].At, s.Producers[b].At) })
	for _, id := range ids[:MaxProducers/4] {
		delete(s.Producers, id)
	}
}

func (s *Stream) change(f *fact.DurableChanged) {
	switch {
	case f.Fork != nil && f.Fork.Gone:
		delete(s.Forks, f.Fork.Ref)
	case f.Fork != nil:
		if s.Forks == nil {
			s.Forks = map[string]Fork{}
		}
		s.Forks[f.Fork.Ref] = Fork{Stream: f.Fork.Stream, Since: f.Timestamp}
	case !f.Deleted:
		s.UsedAt = max(s.UsedAt, f.Timestamp)
	}
	s.Deleted = s.Deleted || f.Deleted
}

// mostRenewal bounds [Stream.Renewal].
const mostRenewal = time.Minute

// Renewal returns for how long uses of the stream after the recorded one need not be
// recorded: an eighth of its TTL, at most a minute. The stream lives for that much longer.
func (s *Stream) Renewal() time.Duration {
	if s.TTL == nil {
		return 0
	}
	return min(ttl(*s.TTL)/8, mostRenewal)
}

// Expires returns when the stream expires; 0: never. One that was deleted and remains for its
// forks has expired, so that sweeps look for those.
func (s *Stream) Expires() int64 {
	switch {
	case s.Deleted:
		return max(s.UsedAt, 1)
	case s.TTL != nil:
		return s.UsedAt + (ttl(*s.TTL) + s.Renewal()).Milliseconds()
	}
	return timeOf(s.ExpiresAt)
}

// timeOf returns a time of RFC 3339; 0: it is none.
func timeOf(text string) int64 {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0
	}
	return max(at.UnixMilli(), 1)
}

// SameExpiry reports whether the stream expires as one with a TTL, in seconds, or a time of
// RFC 3339 does.
func (s *Stream) SameExpiry(ttl *int64, expiresAt string) bool {
	if (s.TTL == nil) != (ttl == nil) || ttl != nil && *s.TTL != *ttl {
		return false
	}
	return timeOf(s.ExpiresAt) == timeOf(expiresAt)
}

// MaxTTL is the largest TTL that counts, in seconds: a hundred years.
const MaxTTL = 100 * 365 * 24 * 60 * 60

func ttl(seconds int64) time.Duration { return time.Duration(min(seconds, MaxTTL)) * time.Second }

// Clone returns a copy that can be folded further.
func (s *Stream) Clone() *Stream {
	if s == nil {
		return nil
	}
	c := *s
	c.Producers, c.Forks = maps.Clone(s.Producers), maps.Clone(s.Forks)
	return &c
}
