//go:build unix

package main

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// promises are what was acknowledged of a session.
type promises struct {
	session  string
	acks     []ack
	runs     []string
	accepted []string
	written  map[string]bool // texts that may be there, beside those of acks; nil: an agent writes
}

// promised returns what was acknowledged so far. l.mu is held.
func (l *ledger) promised() promises {
	p := promises{session: l.session, acks: l.acks, runs: l.runs, accepted: l.accepted}
	if l.agent == "" {
		p.written = maps.Clone(l.unsure)
	}
	return p
}

// hold checks a session's records: all that was acknowledged is there, once,
// where it was said to be; one order; no fenced write; nothing that nobody
// wrote.
func (p promises) hold(records []eventlog.Record) error {
	var found error
	_, err := eventlog.Check(p.session, false, each(records), func(f eventlog.Finding) {
		if found == nil && !f.Code.IsNote() {
			found = wrong([]uint64{f.Sequence}, "%s: %s", f.Code, f.Detail)
		}
	})
	if err := cmp.Or(err, found); err != nil {
		return err
	}
	at := map[string]uint64{} // by text
	runs, answers := map[string]bool{}, map[string]bool{}
	last := map[string]int{} // text, by producer
	for _, r := range records {
		switch r.Type {
		case (*eventlog.RunRequested)(nil).Type():
			runs[r.Run] = true
			if fact, err := r.Fact(); err == nil {
				runs[fact.(*eventlog.RunRequested).RunID] = true
			}
		case (*eventlog.ResultSubmitted)(nil).Type():
			if fact, err := r.Fact(); err == nil {
				answers[fact.(*eventlog.ResultSubmitted).ToolCallID] = true
			}
		}
		if p.written == nil {
			continue
		}
		text := textOf(r)
		if text == "" {
			continue
		}
		if before, twice := at[text]; twice {
			return wrong([]uint64{before, r.Sequence}, "%q is there twice", text)
		}
		at[text] = r.Sequence
		var n int
		dot := strings.LastIndexByte(text, '.')
		_, _ = fmt.Sscanf(text[dot+1:], "%d", &n)
		if who := text[:dot]; n <= last[who] {
			return wrong([]uint64{r.Sequence}, "%q stands behind number %d of the same producer", text, last[who])
		} else {
			last[who] = n
		}
	}
	for _, a := range p.acks {
		for i, text := range a.texts {
			want := a.first + uint64(i)
			if got, ok := at[text]; !ok {
				return wrong([]uint64{want}, "%q was acknowledged at %d and is lost", text, want)
			} else if got != want {
				return wrong([]uint64{want, got}, "%q was acknowledged at %d and stands at %d", text, want, got)
			}
			delete(at, text)
		}
	}
	for text, n := range at {
		if !p.written[text] {
			return wrong([]uint64{n}, "nobody wrote %q", text)
		}
	}
	for _, run := range p.runs {
		if !runs[run] {
			return wrong(nil, "the run %s was acknowledged and is lost", run)
		}
	}
	for _, call := range p.accepted {
		if !answers[call] {
			return wrong(nil, "the answer to call %s was accepted and is lost", call)
		}
	}
	return nil
}

func each(records []eventlog.Record) func(func(eventlog.Record, error) bool) {
	return func(yield func(eventlog.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
