package durable

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// control is the event after each event with data. A client continues after its offset.
type control struct {
	Next     string `json:"streamNextOffset"`
	Cursor   string `json:"streamCursor,omitempty"`
	UpToDate bool   `json:"upToDate,omitempty"`
	Closed   bool   `json:"streamClosed,omitempty"`
}

// follow answers with server-sent events.
func (s *Routes) follow(w http.ResponseWriter, r *web.Request, v *durable.View, from durable.Offset) error {
	return r.Streaming(r.Session, func(ctx context.Context) error {
		lasting, cancel := context.WithTimeout(ctx, followTimeout)
		defer cancel()
		defer s.keep(lasting, r, v)()
		next, stop := iter.Pull2(events(lasting, v, from, r.Query.Values.Get("cursor")))
		defer stop()
		first, err, more := next() // an error here is answered as one
		if errors.Is(err, durable.ErrOffset) {
			return web.Invalid("offset", "is none of this stream")
		}
		if err != nil {
			return err
		}
		if !durable.IsText(v.ContentType) {
			w.Header().Set(headerSSEEncoding, "base64")
		}
		r.NewEventWriter(w).Send(ctx, r.Session, func(yield func(web.Event, error) bool) {
			for e, err := first, error(nil); more; e, err, more = next() {
				if err != nil && (lasting.Err() != nil && ctx.Err() == nil || errors.Is(err, durable.ErrNotFound)) {
					return // it has lasted long enough, or the stream is deleted: the client learns it from its next request
				}
				if !yield(e, err) {
					return
				}
			}
		})
		return nil
	})
}

// events yields the events of a view from an offset on: its data, each piece with its control
// event, and then what is appended.
func events(ctx context.Context, v *durable.View, from durable.Offset, was string) iter.Seq2[web.Event, error] {
	return func(yield func(web.Event, error) bool) {
		var rest halfCharacter
		event := func(p durable.Piece, atTail, closed bool) web.Event {
			if durable.IsText(v.ContentType) && !durable.IsJSON(v.ContentType) {
				p = rest.holdBack(p, closed)
			}
			c := control{Next: p.Next.String(), UpToDate: atTail, Closed: closed}
			if !closed {
				c.Cursor = cursor(was, time.Now())
			}
			return web.Event{Raw: frame(v.ContentType, p, c)}
		}
		told := false // that the client has all
		for p, err := range v.Pieces(ctx, from) {
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			told = p.Next.Position == v.Tail.Position
			if !yield(event(p, told, told && v.Closed), nil) {
				return
			}
		}
		if !told && !yield(event(durable.Piece{Next: v.Tail}, true, v.Closed), nil) || v.Closed {
			return
		}
		for p, err := range v.Follow(ctx) {
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			if !yield(event(p, true, p.Closes), nil) {
				return
			}
		}
	}
}

// halfCharacter is the beginning of a character of text whose rest is in a later append.
// Clients decode each event for itself, so a character must not be in two of them.
type halfCharacter struct {
	bytes []byte
	at    durable.Offset // where it begins: a client that leaves continues there
}

// holdBack puts what was held back before a piece, and holds back half a character at its end,
// unless the stream ends with it.
func (h *halfCharacter) holdBack(p durable.Piece, ends bool) durable.Piece {
	p.Bytes = append(h.bytes, p.Bytes...)
	n := half(p.Bytes)
	if ends || n == 0 {
		h.bytes = nil
		return p
	}
	if more := n == len(p.Bytes) && len(h.bytes) > 0; !more { // it begins in this piece
		h.at = durable.Offset{Position: p.Next.Position - int64(n), Sequence: p.From.Sequence}
	}
	whole := len(p.Bytes) - n
	h.bytes = bytes.Clone(p.Bytes[whole:])
	p.Bytes, p.Next = p.Bytes[:whole], h.at
	return p
}

// half returns how many bytes at the end of a text begin a character and do not end it. Bytes
// that no character begins with count as ended.
func half(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// frame returns a piece and its control event as they are sent, in one write.
func frame(contentType string, p durable.Piece, c control) []byte {
	var b []byte
	switch {
	case p.Empty():
	case durable.IsJSON(contentType):
		b = append(b, "event: data\n"...)
		b = appendData(b, append(appendMessages(nil, p), ']'))
	case durable.IsText(contentType):
		b = append(b, "event: data\n"...)
		b = appendData(b, p.Bytes)
	default:
		b = append(b, "event: data\ndata:"...)
		b = base64.StdEncoding.AppendEncode(b, p.Bytes)
		b = append(b, "\n\n"...)
	}
	b = append(b, "event: control\n"...)
	raw, err := eventlog.Marshal(c)
	if err != nil {
		panic(err) // strings and booleans
	}
	return appendData(b, raw)
}

// appendData appends data line by line, so that nothing in it ends the event, and ends the
// event. Clients drop one space after the colon: a line that begins with one gets another.
func appendData(b, data []byte) []byte {
	for {
		end := bytes.IndexAny(data, "\r\n")
		line := data
		if end >= 0 {
			line = data[:end]
		}
		b = append(b, "data:"...)
		if len(line) > 0 && line[0] == ' ' {
			b = append(b, ' ')
		}
		b = append(append(b, line...), '\n')
		if end < 0 {
			return append(b, '\n')
		}
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
}
