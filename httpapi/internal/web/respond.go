package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// OK answers with v.
func (g *Gate) OK(w http.ResponseWriter, v any) error { return g.Respond(w, 200, v) }

// Respond answers with v as JSON. It returns an error if v can't be encoded or the caller
// has too many large answers under way.
func (g *Gate) Respond(w http.ResponseWriter, status int, v any) error {
	body, err := eventlog.Marshal(v)
	if err != nil {
		return fmt.Errorf("httpapi: encode the answer: %w", err)
	}
	w.Header().Set("Cache-Control", "no-store")
	return g.RespondBytes(w, status, "application/json", body)
}

// RespondBytes answers with a body. It returns an error if the caller has too many large
// answers under way.
func (g *Gate) RespondBytes(w http.ResponseWriter, status int, contentType string, body []byte) error {
	t, ok := w.(*Tracker)
	if ok && t.payer != "" && len(body) > pieceBytes {
		held := Holding{of: g.Answers, caller: t.payer}
		if err := held.Take(min(int64(len(body)), g.Answers.ofCaller)); err != nil { // its size alone is never too much for its caller
			return err
		}
		defer held.giveBack()
	}
	if ok {
		t.endTurn() // the client may read slowly
	}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	rc := http.NewResponseController(w)
	g.ExtendDeadline(rc)
	w.WriteHeader(status)
	_ = g.WriteAll(w, rc, body) // a client that has left is no error
	return nil
}

// NameSession sets the header that names the session of an answer, if its id can be a header's
// value: clients would read other characters than ASCII's differently.
func NameSession(h http.Header, id string) {
	if !strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c > '~' }) {
		h.Set(api.HeaderSession, id)
	}
}

// HasTag reports whether the headers If-None-Match list a tag: the client has what it names.
func HasTag(headers []string, tag string) bool {
	return slices.ContainsFunc(strings.Split(strings.Join(headers, ","), ","), func(t string) bool {
		t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
		return t == tag || t == "*"
	})
}

// WriteJSON is Respond for a value that can always be encoded.
func (g *Gate) WriteJSON(w http.ResponseWriter, status int, v any) {
	if err := g.Respond(w, status, v); err != nil {
		panic(err)
	}
}

// pieceBytes is how much of an answer a client has to read within the write timeout, so
// that a slow client can read an answer of any size.
const pieceBytes = 64 << 10

// leastRate is how many bytes a second a client has to read on average. A client that
// read each piece just in time would keep a large answer in memory for hours.
const leastRate = 64 << 10

// WriteAll writes b, piece by piece.
func (g *Gate) WriteAll(w io.Writer, rc *http.ResponseController, b []byte) error {
	left := g.WriteTimeout
	return g.WritePart(w, rc, b, &left)
}

// WritePart writes a part of an answer. left is how long the client may still take for
// the whole answer: each part adds its time at the least rate, and subtracts the time
// that the client took.
func (g *Gate) WritePart(w io.Writer, rc *http.ResponseController, b []byte, left *time.Duration) error {
	began := time.Now()
	*left += time.Duration(len(b)) * time.Second / leastRate
	last := began.Add(*left)
	defer func() { *left -= time.Since(began) }()
	for piece := range slices.Chunk(b, pieceBytes) {
		deadline := time.Now().Add(g.WriteTimeout)
		if deadline.After(last) {
			deadline = last
		}
		_ = rc.SetWriteDeadline(deadline)
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// ExtendDeadline sets the deadline of the next write. net/http clears it after the
// answer. Writers without deadlines, as in tests, ignore it.
func (g *Gate) ExtendDeadline(rc *http.ResponseController) {
	_ = rc.SetWriteDeadline(time.Now().Add(g.WriteTimeout))
}

// Nothing answers 204: there is nothing to wait for.
func (g *Gate) Nothing(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
