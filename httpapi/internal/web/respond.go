package web

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// OK answers with v.
func (g *Gate) OK(w http.ResponseWriter, v any) error { return g.Respond(w, 200, v) }

// Respond answers with v as JSON, or returns why it can't be encoded.
func (g *Gate) Respond(w http.ResponseWriter, status int, v any) error {
	body, err := Marshal(v)
	if err != nil {
		return fmt.Errorf("httpapi: encode the answer: %w", err)
	}
	if t, ok := w.(*Tracker); ok && t.payer != "" && len(body) > pieceBytes {
		held := Holding{of: g.Answers, caller: t.payer}
		if err := held.Take(min(int64(len(body)), g.Answers.ofCaller)); err != nil { // its size alone is never too much for its caller
			return err
		}
		defer held.giveBack()
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	g.ExtendDeadline(rc)
	w.WriteHeader(status)
	_ = g.WriteAll(w, rc, body) // a client that has left is no error
	return nil
}

// WriteJSON is respond for what can always be encoded.
func (g *Gate) WriteJSON(w http.ResponseWriter, status int, v any) {
	if err := g.Respond(w, status, v); err != nil {
		panic(err)
	}
}

// pieceBytes is how much of an answer a client has to take within the write
// timeout: no size of an answer is too much for a slow one.
const pieceBytes = 64 << 10

// leastRate is how many bytes a second a client has to take on average: one that
// takes a piece just in time would hold the rest of a large answer for hours.
const leastRate = 64 << 10

// WriteAll writes b, piece by piece.
func (g *Gate) WriteAll(w io.Writer, rc *http.ResponseController, b []byte) error {
	left := g.WriteTimeout
	return g.WritePart(w, rc, b, &left)
}

// WritePart writes a part of an answer. left is how long the client may still take for
// the whole answer: each part adds what it may take at the least rate, and takes off
// what the client took.
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

// ExtendDeadline gives the next write its time. net/http lifts the deadline
// behind the answer. Writers without deadlines, as in tests, have none.
func (g *Gate) ExtendDeadline(rc *http.ResponseController) {
	_ = rc.SetWriteDeadline(time.Now().Add(g.WriteTimeout))
}

// Nothing tells a client that there is nothing to wait for.
func (g *Gate) Nothing(w http.ResponseWriter) error {
	w.WriteHeader(http.StatusNoContent)
	return nil
}
