package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
)

// maxSkipped is the largest body of a GET, in bytes.
const maxSkipped = 64 << 10

// limitBody bounds how long a body may take to come that the handler leaves:
// net/http reads the rest, before the answer or behind it. Handlers that read
// one set a deadline of their own.
func (s *Server) limitBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.bodyTimeout))
	}
}

// skipBody reads the body of a GET, which means nothing: no deadline may pass
// later, while the handler streams.
func skipBody(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	switch _, err := io.CopyN(io.Discard, r.Body, maxSkipped+1); {
	case err == nil:
		return &sizeError{"the body is too large", maxSkipped}
	case err != io.EOF:
		return fmt.Errorf("%w: %w", errBodyLost, err)
	}
	unhurried(http.NewResponseController(w))
	return nil
}

// readBody returns the body of a request that must say how long it is, at
// most limit bytes, and send it in time.
func readBody(w http.ResponseWriter, r *http.Request, limit int, timeout time.Duration) ([]byte, error) {
	switch {
	case r.ContentLength < 0, r.ContentLength == 0 && r.Header.Get("Content-Length") == "":
		return nil, errLengthRequired
	case r.ContentLength > int64(limit):
		return nil, &sizeError{"the body is too large", limit}
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(timeout))
	// It grows with what comes: the length is only what the client says.
	var body bytes.Buffer
	body.Grow(int(min(r.ContentLength, firstRead)) + bytes.MinRead)
	if _, err := io.CopyN(&body, r.Body, r.ContentLength); err != nil {
		return nil, fmt.Errorf("%w: %w", errBodyLost, err)
	}
	unhurried(rc)
	return body.Bytes(), nil
}

// firstRead is how much of a body there is room for before any of it has come.
const firstRead = 64 << 10

// unhurried lifts the deadline of reads once no body is waited for: if it
// passed later, that would look like a client that has left.
func unhurried(rc *http.ResponseController) { _ = rc.SetReadDeadline(time.Time{}) }

// readObject returns the JSON object that is the body.
func readObject(w http.ResponseWriter, r *http.Request) (*object, error) {
	raw, err := readBody(w, r, MaxBody, bodyTimeout)
	if err != nil {
		return nil, err
	}
	return parseObject(raw)
}

// parseObject returns the JSON object that a body is.
func parseObject(raw []byte) (*object, error) {
	switch {
	case !utf8.Valid(raw):
		return nil, &eventlog.ValidationError{Reason: "the body is not valid UTF-8"}
	case !json.Valid(raw):
		return nil, &eventlog.ValidationError{Reason: "the body is not valid JSON"}
	}
	if name := duplicate(raw); name != "" {
		return nil, invalid(name, "is given twice")
	}
	o := &object{err: new(error)}
	if json.Unmarshal(raw, &o.members) != nil || o.members == nil {
		return nil, &eventlog.ValidationError{Reason: "the body must be a JSON object"}
	}
	return o, nil
}

// duplicate returns the first name that an object within raw, which is valid
// JSON, has twice, or "". Readers disagree about which one holds.
func duplicate(raw []byte) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var open []map[string]bool // the names of each open object; nil: an array
	isName := false
	for {
		t, err := d.Token()
		if err != nil {
			return "" // the end
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
				if open[len(open)-1][t] {
					return t
				}
				open[len(open)-1][t] = true
				isName = false
				continue
			}
		}
		isName = len(open) > 0 && open[len(open)-1] != nil
	}
}
