package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// helixSessions appends to numbered sessions of a helixd log, each through a
// writer, as helixd's own loop does.
type helixSessions struct {
	*helix
	templates []template
	writers   []*eventlog.Writer
	heads     []uint64
}

func (h *helix) sessions(n int) *helixSessions {
	s := &helixSessions{helix: h, templates: templates(n), heads: make([]uint64, n)}
	for i := range n {
		s.writers = append(s.writers, eventlog.NewWriter(h.log, sessionName(i), eventlog.WriterOptions{
			ID: fmt.Sprint("writer-", i), Observe: func(r eventlog.Record) { s.heads[i] = r.Sequence },
		}))
	}
	return s
}

// append is an appendFunc: every chunk is a record, those of a call all or
// none.
func (h *helixSessions) append(ctx context.Context, s, first, n int) error {
	t := h.templates[s]
	return h.writers[s].Append(ctx, t.entries(t.payloads(first, n))...)
}

// write is an appendFunc: chunks that have come due together may become one
// record, as those of a model that is ahead of the log do.
func (h *helixSessions) write(ctx context.Context, s, first, n int) error {
	if n == 1 {
		return h.append(ctx, s, first, n)
	}
	t := h.templates[s]
	for i := range n {
		if err := h.writers[s].Write(ctx, deltaEntry(sessionName(s), t.delta(first+i))); err != nil {
			return err
		}
	}
	return h.writers[s].Flush(ctx)
}

// verifySample is about how many sessions are read whole; of the others the
// head is looked at.
const verifySample = 8

// verify checks that the log holds what it has acknowledged, and no more.
func (h *helixSessions) verify(ctx context.Context, counts []int) error {
	for s := range counts {
		if counts[s] == 0 {
			continue
		}
		head, err := h.log.Head(ctx, sessionName(s))
		if err != nil || head != h.heads[s] {
			return fmt.Errorf("helixd: the head of %s is %d, not %d: %w", sessionName(s), head, h.heads[s], err)
		}
		if s%max(1, len(counts)/verifySample) == 0 {
			if err := h.verifySession(ctx, h.templates[s], sessionName(s), counts[s]); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifySession reads a session whole and compares its text, which may have
// come in fewer records than chunks.
func (h *helix) verifySession(ctx context.Context, t template, session string, count int) error {
	n := 0
	for r, err := range h.log.Read(ctx, session, 0, 0) {
		if err != nil {
			return err
		}
		c, err := r.Chunk()
		if err != nil {
			return err
		}
		d, ok := c.(*eventlog.TextDelta)
		for rest := ""; ok && (rest == "" || d.Delta != ""); n++ {
			rest = d.Delta
			d.Delta, ok = strings.CutPrefix(rest, t.delta(n))
		}
		if !ok {
			return fmt.Errorf("helixd: %s: chunk %d is missing in %s", session, n-1, r.Payload)
		}
	}
	if n != count {
		return fmt.Errorf("helixd: %s has %d chunks, not %d", session, n, count)
	}
	return nil
}
