package evidence

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/integrity"
)

// Ack is an append that was answered. Its records are at First to Last,
// without gaps.
type Ack struct {
	First, Last uint64
	Texts       []string // see TextOf
}

// Promises are what was acknowledged of a session.
type Promises struct {
	Session  string
	Acks     []Ack
	Runs     []string        // that were acknowledged as begun
	Accepted []string        // calls whose answer was accepted
	Written  map[string]bool // texts that may be there, beside those of Acks; nil: an agent writes
}

// Hold checks a session's records: all that was acknowledged is there, once,
// at the acknowledged place; one order; no fenced write; no record that no client
// wrote.
func (p Promises) Hold(records []eventlog.Record) error {
	var found error
	_, err := integrity.Check(p.Session, false, each(records), func(f integrity.Finding) {
		if found == nil && !f.Code.IsNote() {
			found = Wrong([]uint64{f.Sequence}, "%s: %s", f.Code, f.Detail)
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
		case (*fact.RunRequested)(nil).Type():
			runs[r.Run] = true
			if f, err := r.Fact(); err == nil {
				runs[f.(*fact.RunRequested).RunID] = true
			}
		case (*fact.ResultSubmitted)(nil).Type():
			if f, err := r.Fact(); err == nil {
				answers[f.(*fact.ResultSubmitted).ToolCallID] = true
			}
		}
		if p.Written == nil {
			continue
		}
		text := TextOf(r)
		if text == "" {
			continue
		}
		if before, twice := at[text]; twice {
			return Wrong([]uint64{before, r.Sequence}, "%q is there twice", text)
		}
		at[text] = r.Sequence
		var n int
		dot := strings.LastIndexByte(text, '.')
		_, _ = fmt.Sscanf(text[dot+1:], "%d", &n)
		if who := text[:dot]; n <= last[who] {
			return Wrong([]uint64{r.Sequence}, "%q comes after number %d of the same producer", text, last[who])
		} else {
			last[who] = n
		}
	}
	for _, a := range p.Acks {
		for i, text := range a.Texts {
			want := a.First + uint64(i)
			if got, ok := at[text]; !ok {
				return Wrong([]uint64{want}, "%q was acknowledged at %d and is lost", text, want)
			} else if got != want {
				return Wrong([]uint64{want, got}, "%q was acknowledged at %d and is at %d", text, want, got)
			}
			delete(at, text)
		}
	}
	for text, n := range at {
		if !p.Written[text] {
			return Wrong([]uint64{n}, "nobody wrote %q", text)
		}
	}
	for _, run := range p.Runs {
		if !runs[run] {
			return Wrong(nil, "the run %s was acknowledged and is lost", run)
		}
	}
	for _, call := range p.Accepted {
		if !answers[call] {
			return Wrong(nil, "the answer to call %s was accepted and is lost", call)
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
