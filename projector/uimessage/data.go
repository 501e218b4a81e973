package uimessage

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Data is a part of the application's, or of helixd's own. Type is
// "data-{name}".
type Data struct {
	Type string          `json:"type"`
	ID   string          `json:"id,omitempty"`
	Data json.RawMessage `json:"data"`
	// Transient parts are sent to connected clients, and are in no message.
	Transient bool `json:"transient,omitempty"`
}

func (Data) part() {}

// customData returns a custom event as a part.
func customData(name string, data json.RawMessage) Data {
	if !projector.PartName(name) {
		return Data{Type: "data-custom", Data: encode(struct {
			EventName string          `json:"eventName"`
			Data      json.RawMessage `json:"data"`
		}{name, data})}
	}
	id, transient := projector.EventMarks(name, data)
	if id != "" || transient {
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) == nil {
			if id != "" {
				delete(members, "id")
			}
			if transient {
				delete(members, "transient")
			}
			data = encode(members)
		}
	}
	return Data{Type: "data-" + name, ID: id, Data: data, Transient: transient}
}

// chunkData is a chunk of the stream as a part, or nil: most are none.
func chunkData(c eventlog.Chunk, payload json.RawMessage) *Data {
	whole := func(name, id string) *Data { return &Data{Type: "data-" + name, ID: id, Data: payload} }
	transient := func(name string) *Data { return &Data{Type: "data-" + name, Data: payload, Transient: true} }
	switch c := c.(type) {
	case *eventlog.CustomEvent:
		d := customData(c.EventName, c.Data)
		return &d
	case *eventlog.Output:
		return &Data{Type: "data-output", Data: encode(struct {
			Output json.RawMessage `json:"output"`
		}{c.Output})}
	case *eventlog.StatePatch:
		return &Data{Type: "data-state-patch", Transient: true, Data: encode(struct {
			Patches []eventlog.PatchOp `json:"patches"`
		}{c.Patches})}
	case *eventlog.SubAgentStart:
		return whole("subagent-start", "")
	case *eventlog.SubAgentEnd:
		return whole("subagent-end", "")
	case *eventlog.RunInterrupted:
		return whole("run-interrupted", c.RunID)
	case *eventlog.RunResumed:
		return transient("run-resumed")
	case *eventlog.RunPaused:
		return transient("run-paused")
	case *eventlog.ExecutorSuperseded:
		return transient("executor-superseded")
	case *eventlog.StreamResync:
		return transient("stream-resync")
	case *eventlog.CheckpointCreated:
		return transient("checkpoint-created")
	case *eventlog.StepCommitted:
		return transient("step-committed")
	case *eventlog.StepDiscarded:
		return transient("step-discarded")
	}
	return nil
}

// annotationData is what was kept of a chunk, as a part; nil if it can't be read.
func annotationData(a projector.Annotation) Part {
	c, err := eventlog.DecodeChunk(a.Chunk)
	if err != nil {
		return nil
	}
	d := chunkData(c, a.Chunk)
	if d == nil || d.Transient {
		return nil
	}
	return *d
}

// encode is eventlog.Marshal for what can be encoded.
func encode(v any) json.RawMessage {
	raw, err := eventlog.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // a stored payload that is not JSON
	}
	return raw
}
