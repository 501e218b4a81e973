package fact

import "encoding/json"

// Facts of durable streams: streams of bytes or of JSON messages that are no sessions. Each
// has its own log, which begins with a SessionCreated, for its user and its tenant, and a
// DurableCreated.
type (
	// DurableCreated has the configuration of a durable stream.
	DurableCreated struct {
		ContentType string `json:"contentType"` // as its creator wrote it
		// TTL is after how many seconds without a read or a write the stream expires; nil: it
		// does not.
		TTL *int64 `json:"ttl,omitempty"`
		// ExpiresAt is when the stream expires, a time of RFC 3339; empty: it does not.
		ExpiresAt string `json:"expiresAt,omitempty"`
		// Source is where the stream begins if it is a fork.
		Source *DurableSource `json:"source,omitempty"`
		Base
	}

	// DurableAppended is an append to a durable stream. What it appends, whose append it is,
	// and whether it closes the stream are one record: no crash can separate them.
	DurableAppended struct {
		// Position is how much precedes it in the stream: bytes or, in a stream of JSON,
		// messages.
		Position int64 `json:"position" helix:"count"`
		// At most one of the three is set. Text is data that is valid UTF-8, Data any other.
		Text     string            `json:"text,omitempty"`
		Data     []byte            `json:"data,omitempty"`
		Messages []json.RawMessage `json:"messages,omitempty"`
		// Producer is the producer that may repeat the request; nil: the request names none.
		Producer *DurableProducer `json:"producer,omitempty"`
		// WriterSeq is the writer's own place in its order; empty: it named none.
		WriterSeq string `json:"writerSeq,omitempty"`
		Closes    bool   `json:"closes,omitempty"` // nothing is appended after it
		Base
	}

	// DurableChanged is what happened to a durable stream beside its data. If it has neither
	// Fork nor Deleted, a reader has used the stream, which renews its TTL.
	DurableChanged struct {
		Fork    *DurableFork `json:"fork,omitempty"`    // a fork begins here, or is gone
		Deleted bool         `json:"deleted,omitempty"` // it remains for its forks only
		Base
	}

	// DurableSource is the stream that a fork continues.
	DurableSource struct {
		Stream string `json:"stream" helix:"id"` // its log
		// Ref names the fork to its source. Another fork with the same name has another one.
		Ref string `json:"ref" helix:"id"`
		// Position is where the fork leaves its source. The record before it has Sequence.
		Position int64  `json:"position" helix:"count"`
		Sequence uint64 `json:"sequence"`
		// Depth is how many streams precede the fork, at least 1.
		Depth int `json:"depth" helix:"count"`
	}

	// DurableFork is a fork, as its source knows it.
	DurableFork struct {
		Stream string `json:"stream" helix:"id"` // its log
		Ref    string `json:"ref" helix:"id"`
		Gone   bool   `json:"gone,omitempty"`
	}

	// DurableProducer is a producer's request: its Seq-th one, from 0, of its Epoch.
	DurableProducer struct {
		ID    string `json:"id" helix:"id"`
		Epoch int64  `json:"epoch" helix:"count"`
		Seq   int64  `json:"seq" helix:"count"`
	}
)

// Size returns how much the append adds to the position: bytes or messages.
func (f *DurableAppended) Size() int64 {
	return int64(len(f.Text) + len(f.Data) + len(f.Messages))
}

func (*DurableCreated) Type() string  { return "durable_created" }
func (*DurableAppended) Type() string { return "durable_appended" }
func (*DurableChanged) Type() string  { return "durable_changed" }
