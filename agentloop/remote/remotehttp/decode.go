package remotehttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
)

// decodeEvent returns nil for events of kinds that it does not know: later
// versions have more. The kind is the event's name, or the type that the data
// names if it has none.
func decodeEvent(e RawEvent, hide upstream.Secrets) (remote.Event, error) {
	if !utf8.Valid(e.Data) { // as an SSE client decodes it
		e.Data = bytes.ToValidUTF8(e.Data, []byte(string(utf8.RuneError)))
	}
	kind := e.Name
	if kind == "" {
		var d struct{ Type string }
		if json.Unmarshal(e.Data, &d) != nil {
			return nil, fmt.Errorf("%w: an event without a kind", remote.ErrMalformed)
		}
		kind = d.Type
	}
	switch kind {
	case "chunk":
		return decodeChunk(e)
	case "end":
		var d struct {
			Output, State json.RawMessage
			Status        string
		}
		if json.Unmarshal(e.Data, &d) != nil {
			return nil, fmt.Errorf("%w: end event", remote.ErrMalformed)
		}
		return remote.EndEvent{Output: d.Output, State: d.State, Status: d.Status}, nil
	case "error":
		var d struct {
			Error       string
			Recoverable bool
		}
		if json.Unmarshal(e.Data, &d) != nil {
			return nil, fmt.Errorf("%w: error event", remote.ErrMalformed)
		}
		return remote.ErrorEvent{Error: shown(d.Error, hide), Recoverable: d.Recoverable}, nil
	}
	return nil, nil
}

func decodeChunk(e RawEvent) (remote.Event, error) {
	var d struct {
		Chunk    json.RawMessage
		Sequence uint64
	}
	if json.Unmarshal(e.Data, &d) != nil {
		return nil, fmt.Errorf("%w: chunk event", remote.ErrMalformed)
	}
	if d.Sequence == 0 {
		d.Sequence, _ = strconv.ParseUint(e.ID, 10, 64)
	}
	switch {
	case d.Sequence == 0:
		return nil, fmt.Errorf("%w: a chunk without a sequence", remote.ErrMalformed)
	case len(d.Chunk) > eventlog.MaxPayload:
		return nil, fmt.Errorf("%w: a chunk of %d bytes", remote.ErrTooLarge, len(d.Chunk))
	}
	c, err := eventlog.DecodeChunk(d.Chunk)
	if err != nil {
		return nil, fmt.Errorf("%w: the chunk of sequence %d", remote.ErrMalformed, d.Sequence)
	}
	return remote.ChunkEvent{Sequence: d.Sequence, Chunk: c, Raw: d.Chunk}, nil
}
