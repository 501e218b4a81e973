package openai

import (
	"bytes"
	"encoding/json"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// decoder passes a stream's events to the SDK, notes its end mark, which the
// SDK takes for the end of the connection and the other way round, and
// straightens the forms of errors that the SDK misreads.
type decoder struct {
	ssestream.Decoder
	clock *idleClock // runs while an event is waited for
	event ssestream.Event
	done  bool
}

func (d *decoder) Next() bool {
	d.clock.start()
	ok := d.Decoder.Next()
	d.clock.stop()
	if !ok {
		return false
	}
	d.event = d.Decoder.Event()
	if bytes.HasPrefix(d.event.Data, []byte("[DONE]")) {
		d.done = true
		return true
	}
	if d.event.Type == "error" || bytes.Contains(d.event.Data, []byte(`"error"`)) {
		d.event.Data = straighten(d.event)
	}
	return true
}

func (d *decoder) Event() ssestream.Event { return d.event }

// straighten gives an error event the form {"error": …} and takes an empty
// "error" out of an event that is none: to the SDK, a field that is null is an
// error, too.
func straighten(e ssestream.Event) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Data, &fields) != nil {
		return e.Data
	}
	switch inner, ok := fields["error"]; {
	case ok && (string(inner) == "null" || string(inner) == `""`):
		delete(fields, "error")
	case !ok && (e.Type == "error" || string(fields["object"]) == `"error"`):
		fields = map[string]json.RawMessage{"error": bytes.TrimSpace(e.Data)}
	default:
		return e.Data
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return e.Data
	}
	return data
}
