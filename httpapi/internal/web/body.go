package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// DefaultBodyTimeout is how long a client may take to send a body, wanted or not.
const DefaultBodyTimeout = 30 * time.Second

// LeftoverTimeout is how long the rest of a refused body is read.
const LeftoverTimeout = time.Second

// maxSkipped is the largest body of a GET, in bytes.
const maxSkipped = 64 << 10

// LimitBody bounds how long a body may take to come that the handler leaves:
// net/http reads the rest, before the answer or behind it. Handlers that read
// one set a deadline of their own.
func (g *Gate) LimitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.BodyTimeout))
	}
}

// DropBody has a request that is refused not wait for its body: the answer ends the
// connection. What comes of the body within a second is read, else the client might
// not get the answer.
func (g *Gate) DropBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.ProtoMajor > 1 { // an answer over HTTP/2 ends its stream alone
		return
	}
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(g.BodyTimeout, LeftoverTimeout)))
}

// skipBody reads the body of a GET, which means nothing: no deadline may pass
// later, while the handler streams. It refuses one on a public route, whose callers
// nobody knows: they must not hold a connection.
func skipBody(w http.ResponseWriter, r *http.Request, public bool) error {
	switch {
	case r.ContentLength == 0 || r.Method != http.MethodGet && r.Method != http.MethodHead:
		return nil
	case public:
		return &eventlog.ValidationError{Reason: "a GET of this route must have no body"}
	}
	switch _, err := io.CopyN(io.Discard, r.Body, maxSkipped+1); {
	case err == nil:
		return &SizeError{"the body is too large", maxSkipped}
	case err != io.EOF:
		return fmt.Errorf("%w: %w", ErrBodyLost, err)
	}
	unhurried(http.NewResponseController(w))
	return nil
}

// ReadBody returns the body of a request that must say how long it is, at
// most limit bytes, and send it in time.
func (r *Request) ReadBody(w http.ResponseWriter, limit int, timeout time.Duration) ([]byte, error) {
	in, err := r.OpenBody(w, limit, timeout)
	if err != nil {
		return nil, err
	}
	// It grows with what comes: the length is only what the client says.
	var body bytes.Buffer
	body.Grow(int(min(r.ContentLength, FirstRead)) + bytes.MinRead)
	_, _ = body.ReadFrom(in) // its error is close's
	return body.Bytes(), in.Close()
}

// bodyReader reads a body that has a length. What arrives counts until LeaveBody,
// or the request's end.
type bodyReader struct {
	in     io.LimitedReader
	rc     *http.ResponseController
	counts *Holding // nil: the body is small. A caller can always stop a run or approve a call while others hold large bodies open.
	err    error
}

// OpenBody is ReadBody for who does not hold the whole body. What follows must
// end with close.
func (r *Request) OpenBody(w http.ResponseWriter, limit int, timeout time.Duration) (*bodyReader, error) {
	switch {
	case r.ContentLength < 0, r.ContentLength == 0 && r.Header.Get("Content-Length") == "":
		return nil, ErrLengthRequired
	case r.ContentLength > int64(limit):
		return nil, &SizeError{"the body is too large", limit}
	}
	b := &bodyReader{in: io.LimitedReader{R: r.Body, N: r.ContentLength}, rc: http.NewResponseController(w)}
	if r.ContentLength > FirstRead {
		b.counts = &r.Held
		if err := r.Held.expect(r.ContentLength); err != nil {
			return nil, err
		}
	}
	_ = b.rc.SetReadDeadline(time.Now().Add(timeout))
	return b, nil
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.counts != nil {
		if busy := b.counts.Take(int64(n)); busy != nil {
			b.err = busy
			return 0, busy
		}
	}
	if errors.Is(err, io.EOF) && b.in.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		b.err = fmt.Errorf("%w: %w", ErrBodyLost, err)
	}
	return n, err
}

// Close reads what is left, so that the client gets its answer, and tells
// whether the body has come whole.
func (b *bodyReader) Close() error {
	if b.err == nil {
		_, _ = io.Copy(io.Discard, b) // its error is kept
	}
	if b.err == nil {
		unhurried(b.rc)
	}
	return b.err
}

// LeaveBody tells that nothing of the body is held any more.
func (r *Request) LeaveBody() { r.Held.giveBack() }

// FirstRead is how much of a body there is room for before any of it has come.
const FirstRead = 64 << 10

// unhurried lifts the deadline of reads once no body is waited for: if it
// passed later, that would look like a client that has left.
func unhurried(rc *http.ResponseController) { _ = rc.SetReadDeadline(time.Time{}) }

// ReadObject returns the JSON object that is the body.
func (r *Request) ReadObject(w http.ResponseWriter) (*Object, error) {
	raw, err := r.ReadBody(w, api.MaxBody, DefaultBodyTimeout)
	if err != nil {
		return nil, err
	}
	return ParseObject(raw)
}

// ReadNamed is ReadObject for a body that names the session, see ReadSession.
func (r *Request) ReadNamed(w http.ResponseWriter, limit int, members ...string) (*Object, error) {
	raw, err := r.ReadSession(w, limit, members...)
	if err != nil {
		return nil, err
	}
	done, err := r.ParseTurn()
	if err != nil {
		return nil, err
	}
	defer done()
	return ParseObject(raw)
}

// ReadSession is ReadBody for a body that names the session, as the first of the
// given members that it has. It authorizes the caller on that session before
// anything else of the body is parsed.
func (r *Request) ReadSession(w http.ResponseWriter, limit int, members ...string) ([]byte, error) {
	raw, err := r.ReadBody(w, limit, DefaultBodyTimeout)
	if err != nil {
		return nil, err
	}
	done, err := r.ParseTurn()
	if err != nil {
		return nil, err
	}
	session := named(raw, members)
	done()
	if session != "" {
		if err := r.Authorize(session); err != nil {
			return nil, err
		}
		r.named = session
	}
	return raw, nil
}

// named returns the id that the first of the members says that a body has, or ""
// if that is none: then the body is refused when it is read.
func named(raw []byte, members []string) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return ""
	}
	found := map[string]string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return ""
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return ""
		}
		var id string
		if name, ok := name.(string); ok && slices.Contains(members, name) {
			if _, twice := found[name]; twice || json.Unmarshal(value, &id) != nil {
				return ""
			}
			found[name] = id
		}
	}
	for _, name := range members {
		if id, ok := found[name]; ok {
			if eventlog.ValidateClientSessionID(id) != nil {
				return ""
			}
			return id
		}
	}
	return ""
}

// ParseObject returns the JSON object that a body is.
func ParseObject(raw []byte) (*Object, error) {
	switch {
	case !utf8.Valid(raw):
		return nil, &eventlog.ValidationError{Reason: "the body is not valid UTF-8"}
	case !json.Valid(raw):
		return nil, &eventlog.ValidationError{Reason: "the body is not valid JSON"}
	}
	if err := checkNames(raw); err != nil {
		return nil, err
	}
	o := &Object{Err: new(error)}
	if json.Unmarshal(raw, &o.Members) != nil || o.Members == nil {
		return nil, &eventlog.ValidationError{Reason: "the body must be a JSON object"}
	}
	return o, nil
}

// checkNames refuses a body, which is valid JSON, if an object in it has a name twice,
// since readers disagree about which one holds, or if it has more than MaxMembers
// itself: they would take a multiple of its size to hold.
func checkNames(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var open []map[string]bool // the names of each open object; nil: an array
	isName := false
	for {
		t, err := d.Token()
		if err != nil {
			return nil // the end
		}
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			isName = len(open) > 0 && open[len(open)-1] != nil
			continue
		case string:
			if isName {
				names := open[len(open)-1]
				if names[t] {
					return Invalid(t, "is given twice")
				}
				if len(open) == 1 && len(names) == api.MaxMembers {
					return &eventlog.ValidationError{Reason: fmt.Sprintf("the body has more than %d members", api.MaxMembers)}
				}
				names[t] = true
				isName = false
				continue
			}
		}
		isName = len(open) > 0 && open[len(open)-1] != nil
	}
}
