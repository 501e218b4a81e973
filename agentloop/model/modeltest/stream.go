package modeltest

import (
	"encoding/json"
	"time"
)

// Stream is one answer. Its zero value is a stream that ends at once.
type Stream struct {
	Events []Event
	Tail   string        // raw bytes after the events: a part of one, say
	Done   bool          // ends with "data: [DONE]", as Chat Completions does
	Delay  time.Duration // before each event

	// How it ends, if not in good order.
	Cut  bool // drop the connection after the events
	Hang bool // send nothing more after the events until the client leaves
	Drop bool // close the connection without an answer, after Delay

	// Status, if it is not 0, answers with Body instead of a stream.
	Status     int
	Body       string
	RetryAfter string // the header of that name, beside Status; empty: none
	// ContentType is that of the answer; empty means text/event-stream, or
	// application/json with a Status.
	ContentType string
}

// Event is one server-sent event.
type Event struct {
	Type string // of the "event:" line; empty means that there is none
	Data string // a single line
}

// Events makes a stream of events, each given by its data, that ends as the
// provider's do: events whose JSON has a type (Messages, Responses) carry it
// in their "event:" line; others (Chat Completions) are followed by [DONE].
func Events(data ...string) Stream {
	s := Stream{Done: true}
	for _, d := range data {
		var head struct {
			Type string `json:"type"`
		}
		// What is not JSON is served as it is: tests send that, too.
		_ = json.Unmarshal([]byte(d), &head)
		if head.Type != "" {
			s.Done = false
		}
		s.Events = append(s.Events, Event{Type: head.Type, Data: d})
	}
	return s
}

// Failure is an answer with an HTTP status and a JSON body.
func Failure(status int, body string) Stream {
	return Stream{Status: status, Body: body}
}

// After returns s with d before each event.
func (s Stream) After(d time.Duration) Stream {
	s.Delay = d
	return s
}

// Split cuts s before each event of the type, but for what s begins with: a
// recording may hold the streams of several answers.
func (s Stream) Split(kind string) []Stream {
	var out []Stream
	for i, e := range s.Events {
		if i == 0 || e.Type == kind {
			next := s
			next.Events = nil
			out = append(out, next)
		}
		last := &out[len(out)-1]
		last.Events = append(last.Events, e)
	}
	return out
}
