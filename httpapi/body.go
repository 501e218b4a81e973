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
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, fmt.Errorf("%w: %w", errBodyLost, err)
	}
	// A deadline that passes later would look like a client that has left.
	_ = rc.SetReadDeadline(time.Time{})
	return body, nil
}

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
