// Package sse reads server-sent events.
package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Event is a server-sent event.
type Event struct {
	ID   string // the event's own; an earlier one's is not kept
	Name string // empty: none
	Data []byte // its lines, joined by line feeds
}

// TooLongError is the error of a line, or of an event's data, beyond the reader's limit.
type TooLongError struct {
	What  string
	Limit int // in bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s has more than %d bytes", e.What, e.Limit)
}

// Reader reads server-sent events as the HTML standard has them: lines end
// in CR, LF or CRLF, an event ends in an empty line, and one that the stream's
// end cuts off is none.
type Reader struct {
	r       *bufio.Reader
	limit   int    // of a line and of an event's data, in bytes
	line    []byte // the last line, reused
	begun   bool   // the first line, which may have a byte order mark, is finished
	afterCR bool   // a line feed that comes next belongs to the last line
}

// keptLine is the largest buffer that is kept for the next line, in bytes.
const keptLine = 64 << 10

var byteOrderMark = []byte("\xef\xbb\xbf")

// NewReader returns a reader whose lines and events have at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// Next returns the next event. Its error is the reader's, io.EOF included, or a
// *TooLongError.
func (s *Reader) Next() (Event, error) {
	var e Event
	for {
		line, err := s.Line()
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if e.Data != nil {
				return e, nil
			}
			e = Event{} // without data it is not dispatched
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":")) // a comment's field is empty
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if len(e.Data)+len(value)+1 > s.limit {
				return Event{}, &TooLongError{"an event", s.limit}
			}
			if e.Data == nil {
				e.Data = make([]byte, 0, len(value))
			} else {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
		case "event":
			e.Name = string(value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.ID = string(value)
			}
		}
	}
}

// Partial reports whether the stream has ended within a line.
func (s *Reader) Partial() bool { return len(s.line) > 0 }

// Line returns the next line without its end, valid until the next call. It does not
// wait for what follows a CR. Errors: as Next.
func (s *Reader) Line() ([]byte, error) {
	if cap(s.line) > keptLine {
		s.line = nil
	}
	s.line = s.line[:0]
	for {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
		part, _ := s.r.Peek(s.r.Buffered())
		if s.afterCR {
			s.afterCR = false
			if part[0] == '\n' {
				_, _ = s.r.Discard(1)
				continue
			}
		}
		n := bytes.IndexAny(part, "\r\n")
		whole := n >= 0
		if !whole {
			n = len(part)
		}
		if len(s.line)+n > s.limit {
			return nil, &TooLongError{"a line", s.limit}
		}
		s.line = append(s.line, part[:n]...)
		if !whole {
			_, _ = s.r.Discard(n)
			continue
		}
		s.afterCR = part[n] == '\r'
		_, _ = s.r.Discard(n + 1)
		if !s.begun {
			s.begun = true
			s.line = bytes.TrimPrefix(s.line, byteOrderMark)
		}
		return s.line, nil
	}
}
