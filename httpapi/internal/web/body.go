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

// DefaultBodyTimeout is how long a client may take to send a body, also one that no
// handler reads.
const DefaultBodyTimeout = 30 * time.Second

// LeftoverTimeout is how long the server reads the rest of a body that it has refused.
const LeftoverTimeout = time.Second

// maxSkipped is the largest body of a GET, in bytes, and maxKept the largest one that its
// handler can read.
const (
	maxSkipped = 64 << 10
	maxKept    = 1 << 10
)

// LimitBody sets a deadline for a body that no handler reads: net/http reads the rest
// itself, before or after the answer. Handlers that read a body set their own deadline.
func (g *Gate) LimitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(g.BodyTimeout))
	}
}

// DropBody answers a refused request without waiting for its body: the connection closes
// after the answer. The server still reads for LeftoverTimeout, since a client that is
// cut off while it sends may never see the answer.
func (g *Gate) DropBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 || r.ProtoMajor > 1 { // an answer over HTTP/2 ends its stream alone
		return
	}
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(g.BodyTimeout, LeftoverTimeout)))
}

// skipBody reads the body of a GET, so that no read deadline passes while the handler
// streams, and keeps a small one in r.Body. On a public route a body is an error: callers
// without credentials must not hold a connection.
func skipBody(w http.ResponseWriter, r *http.Request, public bool) error {
	switch {
	case r.ContentLength == 0 || r.Method != http.MethodGet && r.Method != http.MethodHead:
		return nil
	case public:
		return &eventlog.ValidationError{Reason: "a GET of this route must have no body"}
	}
	var kept bytes.Buffer
	_, err := io.CopyN(&kept, r.Body, maxKept+1)
	if err == nil {
		kept.Reset()
		_, err = io.CopyN(io.Discard, r.Body, maxSkipped-maxKept)
	}
	switch {
	case err == nil:
		return &SizeError{"the body is too large", maxSkipped}
	case err != io.EOF:
		return fmt.Errorf("%w: %w", ErrBodyLost, err)
	}
	r.Body = io.NopCloser(&kept)
	clearReadDeadline(http.NewResponseController(w))
	return nil
}

// ReadBody returns the body. It must have a Content-Length of at most limit bytes, and
// arrive before DefaultBodyTimeout has passed.
func (r *Request) ReadBody(w http.ResponseWriter, limit int) ([]byte, error) {
	in, err := r.OpenBody(w, limit, DefaultBodyTimeout)
	if err != nil {
		return nil, err
	}
	// It grows with what comes: the length is only what the client says.
	var body bytes.Buffer
	body.Grow(int(min(r.ContentLength, FirstRead)) + bytes.MinRead)
	_, _ = body.ReadFrom(in) // its error is close's
	return body.Bytes(), in.Close()
}

// ReadAny is ReadBody for a body that may be empty, or have no Content-Length.
func (r *Request) ReadAny(w http.ResponseWriter, limit int) ([]byte, error) {
	switch {
	case r.ContentLength == 0:
		return nil, nil
	case r.ContentLength > 0:
		return r.ReadBody(w, limit)
	}
	b := &bodyReader{in: io.LimitedReader{R: r.Body, N: int64(limit) + 1}, rc: http.NewResponseController(w), counts: &r.Held, unbounded: true}
	_ = b.rc.SetReadDeadline(time.Now().Add(DefaultBodyTimeout))
	var body bytes.Buffer
	_, _ = body.ReadFrom(b) // its error is close's
	if b.err == nil && body.Len() > limit {
		return nil, &SizeError{"the body is too large", limit}
	}
	return body.Bytes(), b.Close()
}

// bodyReader reads a body that has a length. What has arrived counts in the caller's
// budget until LeaveBody, or until the request ends.
type bodyReader struct {
	in io.LimitedReader
	rc *http.ResponseController
	// counts is nil for a small body: a caller must be able to stop a run or approve a
	// call while others hold large bodies open.
	counts    *Holding
	unbounded bool // the body has no length: it ends when the client ends it
	err       error
}

// OpenBody is ReadBody for a handler that reads the body piece by piece. The handler must
// call Close.
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
	if errors.Is(err, io.EOF) && b.in.N > 0 && !b.unbounded {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && err != io.EOF {
		b.err = fmt.Errorf("%w: %w", ErrBodyLost, err)
	}
	return n, err
}

// Close reads the rest, so that the client gets its answer, and returns an error if the
// body did not arrive whole.
func (b *bodyReader) Close() error {
	if b.err == nil {
		_, _ = io.Copy(io.Discard, b) // its error is kept
	}
	if b.err == nil {
		clearReadDeadline(b.rc)
	}
	return b.err
}

// LeaveBody returns what the body has taken of the caller's budget.
func (r *Request) LeaveBody() { r.Held.giveBack() }

// FirstRead is the largest buffer that is allocated before any of a body has arrived. A
// body up to this size is small.
const FirstRead = 64 << 10

// clearReadDeadline removes the deadline after the body: if it passed later, net/http
// would take the client to have left.
func clearReadDeadline(rc *http.ResponseController) { _ = rc.SetReadDeadline(time.Time{}) }

// ReadObject returns the JSON object that is the body.
func (r *Request) ReadObject(w http.ResponseWriter) (*Object, error) {
	raw, err := r.ReadBody(w, api.MaxBody)
	if err != nil {
		return nil, err
	}
	return r.Parse(raw)
}

// ReadOptObject is ReadObject for a body that may be empty, which is an object without members.
func (r *Request) ReadOptObject(w http.ResponseWriter) (*Object, error) {
	raw, err := r.ReadBody(w, api.MaxBody)
	switch {
	case err != nil:
		return nil, err
	case len(raw) == 0:
		return &Object{Members: map[string]json.RawMessage{}, Err: new(error)}, nil
	}
	return r.Parse(raw)
}

// ReadNamed is ReadObject for a body that names the session. See ReadSession.
func (r *Request) ReadNamed(w http.ResponseWriter, members ...string) (*Object, error) {
	raw, err := r.ReadSession(w, api.MaxBody, members...)
	if err != nil {
		return nil, err
	}
	return r.Parse(raw)
}

// Parse is ParseObject when it is the request's turn to parse.
func (r *Request) Parse(raw []byte) (*Object, error) {
	done, err := r.ParseTurn()
	if err != nil {
		return nil, err
	}
	defer done()
	return ParseObject(raw)
}

// ReadSession is ReadBody for a body that names the session, in the first of the given
// members that it has. It authorizes the caller on that session before it parses the
// rest of the body.
func (r *Request) ReadSession(w http.ResponseWriter, limit int, members ...string) ([]byte, error) {
	raw, err := r.ReadBody(w, limit)
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

// named returns the session id in the first of the members that a body has, or "" if it
// is not a valid id: the body is then refused when it is parsed.
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

// ParseObject parses a body, which must be a JSON object.
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

// checkNames returns an error if an object in a body, which is valid JSON, has a name
// twice, since parsers disagree about which one counts, or if the body itself has more
// than api.MaxMembers, since a map of them takes a multiple of its size.
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
