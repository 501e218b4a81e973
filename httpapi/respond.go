package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// ok answers with v.
func (g *gate) ok(w http.ResponseWriter, v any) error { return g.respond(w, 200, v) }

// respond answers with v as JSON, or returns why it can't be encoded.
func (g *gate) respond(w http.ResponseWriter, status int, v any) error {
	body, err := marshal(v)
	if err != nil {
		return fmt.Errorf("httpapi: encode the answer: %w", err)
	}
	if t, ok := w.(*tracker); ok && t.payer != "" && len(body) > pieceBytes {
		held := holding{of: g.answers, caller: t.payer}
		if err := held.take(min(int64(len(body)), g.answers.ofCaller)); err != nil { // its size alone is never too much for its caller
			return err
		}
		defer held.giveBack()
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	g.extendDeadline(rc)
	w.WriteHeader(status)
	_ = g.write(w, rc, body) // a client that has left is no error
	return nil
}

// writeJSON is respond for what can always be encoded.
func (g *gate) writeJSON(w http.ResponseWriter, status int, v any) {
	if err := g.respond(w, status, v); err != nil {
		panic(err)
	}
}

// pieceBytes is how much of an answer a client has to take within the write
// timeout: no size of an answer is too much for a slow one.
const pieceBytes = 64 << 10

// leastRate is how many bytes a second a client has to take on average: one that
// takes a piece just in time would hold the rest of a large answer for hours.
const leastRate = 64 << 10

// write writes b, piece by piece.
func (g *gate) write(w io.Writer, rc *http.ResponseController, b []byte) error {
	left := g.writeTimeout
	return g.writePart(w, rc, b, &left)
}

// writePart writes a part of an answer. left is how long the client may still take for
// the whole answer: each part adds what it may take at the least rate, and takes off
// what the client took.
func (g *gate) writePart(w io.Writer, rc *http.ResponseController, b []byte, left *time.Duration) error {
	began := time.Now()
	*left += time.Duration(len(b)) * time.Second / leastRate
	last := began.Add(*left)
	defer func() { *left -= time.Since(began) }()
	for piece := range slices.Chunk(b, pieceBytes) {
		deadline := time.Now().Add(g.writeTimeout)
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

// extendDeadline gives the next write its time. net/http lifts the deadline
// behind the answer. Writers without deadlines, as in tests, have none.
func (g *gate) extendDeadline(rc *http.ResponseController) {
	_ = rc.SetWriteDeadline(time.Now().Add(g.writeTimeout))
}

// nothing tells a client that there is nothing to wait for.
func (g *gate) nothing(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
