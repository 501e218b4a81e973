package eventlog

// StreamStatus is the life cycle state of a session's stream.
//
//	         stream_paused            stream_end / stream_failed
//	active ---------------> paused ------------------------------> ended / failed
//	  ^  <----------------------'                                        |
//	  |        stream_resumed                                            |
//	  '------------------------------------------------------------------'
//	                          run_requested (a new turn)
type StreamStatus string

// Stream states (document 001).
const (
	StreamActive     StreamStatus = "active"
	StreamWaiting    StreamStatus = "paused"
	StreamCompleted  StreamStatus = "ended"
	StreamTerminated StreamStatus = "failed"
)

// Terminal reports whether the stream takes chunks only after a new turn.
func (s StreamStatus) Terminal() bool { return s == StreamCompleted || s == StreamTerminated }

// After returns the status that follows s when a record of the given kind
// and type is appended. Terminal states stick until a new turn.
func (s StreamStatus) After(e Envelope) StreamStatus {
	if s == "" {
		s = StreamActive
	}
	if e.Kind != KindFact {
		return s
	}
	if e.Type == (*RunRequested)(nil).Type() {
		return StreamActive
	}
	if s.Terminal() {
		return s
	}
	switch e.Type {
	case (*StreamPaused)(nil).Type():
		return StreamWaiting
	case (*StreamResumed)(nil).Type():
		return StreamActive
	case (*StreamEnd)(nil).Type():
		return StreamCompleted
	case (*StreamFailed)(nil).Type():
		return StreamTerminated
	}
	return s
}

// Refuses reports whether a record must not follow in a stream of status s:
// a terminal stream takes facts, but neither chunks nor a second end.
func (s StreamStatus) Refuses(e Envelope) bool {
	if !s.Terminal() {
		return false
	}
	switch e.Type {
	case (*StreamPaused)(nil).Type(), (*StreamResumed)(nil).Type(), (*StreamEnd)(nil).Type(), (*StreamFailed)(nil).Type():
		return true
	}
	return e.Kind == KindChunk
}
