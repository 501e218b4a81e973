package evidence

import (
	"encoding/json"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// Reader is what a client of GET /sse has got so far, over any number of
// connections, each after the last chunk of the one before.
type Reader struct {
	Seen []Shown
	// Over is set by the end of the stream, not by one of a run that waits.
	Over bool
}

// Last is the sequence of the last chunk, 0 if there is none.
func (r *Reader) Last() uint64 {
	if len(r.Seen) == 0 {
		return 0
	}
	return r.Seen[len(r.Seen)-1].Sequence
}

// Take takes an event. It reports whether nothing follows on its connection.
// The error is a *Problem: a malformed event, or a chunk that does not come
// after the last one.
func (r *Reader) Take(e remotehttp.RawEvent) (last bool, err error) {
	var body struct {
		Type, Status string
		Chunk        json.RawMessage
		Sequence     uint64
	}
	err = json.Unmarshal(e.Data, &body)
	if err != nil || body.Type != e.Name || e.Name == "chunk" && e.ID != strconv.FormatUint(body.Sequence, 10) {
		return true, Wrong(nil, "an event %s with id %s and data %s", e.Name, e.ID, e.Data)
	}
	switch e.Name {
	case "chunk":
		if last := r.Last(); body.Sequence <= last {
			return true, Wrong([]uint64{last, body.Sequence}, "a reader got %d after %d", body.Sequence, last)
		}
		r.Seen = append(r.Seen, Shown{body.Sequence, Hash(body.Chunk)})
	case "end", "error":
		r.Over = body.Status == "" // else it waits, and continues later
		return true, nil
	}
	return false, nil
}
