package stream

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync/atomic"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// chunkEvent returns a chunk record as an event. It does not decode the payload, so that
// chunk types of later versions pass. It is false for a payload that is not JSON. White
// space between tokens is dropped, since a line break would end the data.
func chunkEvent(r eventlog.Record) (web.Event, bool) {
	if r.Kind != eventlog.KindChunk {
		return web.Event{}, false
	}
	const before, between = `{"type":"chunk","chunk":`, `,"sequence":`
	data := bytes.NewBuffer(make([]byte, 0, len(before)+len(r.Payload)+len(between)+len("18446744073709551615}")))
	data.WriteString(before)
	if json.Compact(data, r.Payload) != nil {
		return web.Event{}, false
	}
	data.WriteString(between)
	data.Write(strconv.AppendUint(data.AvailableBuffer(), r.Sequence, 10))
	data.WriteByte('}')
	return web.Event{ID: web.Position{Sequence: r.Sequence}, Name: "chunk", Data: data.Bytes()}, true
}

// liveEvents caches the events of the last live chunks: all clients of a session get the
// same event, which is encoded once.
type liveEvents [64]atomic.Pointer[liveEvent]

type liveEvent struct {
	record eventlog.Record
	event  web.Event
}

// maxLiveEvent is the largest payload, in bytes, whose event is cached.
const maxLiveEvent = 4 << 10

// chunkEvent is chunkEvent with the cache. The log hands the same payload to all followers
// of a session, so the payload's address identifies the record.
func (l *liveEvents) chunkEvent(r eventlog.Record) (web.Event, bool) {
	if r.Kind != eventlog.KindChunk || len(r.Payload) == 0 || len(r.Payload) > maxLiveEvent {
		return chunkEvent(r)
	}
	at := &l[r.Sequence%uint64(len(l))]
	if had := at.Load(); had != nil && had.record.Sequence == r.Sequence &&
		len(had.record.Payload) == len(r.Payload) && &had.record.Payload[0] == &r.Payload[0] {
		return had.event, true
	}
	e, ok := chunkEvent(r)
	if ok {
		at.Store(&liveEvent{r, e})
	}
	return e, ok
}
