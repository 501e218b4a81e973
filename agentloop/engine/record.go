package engine

import (
	"context"

	"github.com/helixd/helixd/eventlog"
)

// fact is a record to be appended: f or c.
type fact struct {
	f     eventlog.Fact
	c     eventlog.Chunk
	run   string
	call  string
	agent string // the session that a fact is about, if it is another one of the tree
}

// about labels facts as another session's of the tree.
func about(session string, facts []fact) []fact {
	for i := range facts {
		facts[i].agent = session
	}
	return facts
}

// setActor records in facts who asked for them.
func setActor(ctx context.Context, facts []fact) {
	for _, x := range facts {
		if x.f != nil {
			eventlog.SetActor(ctx, x.f)
		}
	}
}

func entriesOf(session string, facts []fact) ([]eventlog.Entry, error) {
	entries := make([]eventlog.Entry, len(facts))
	for i, x := range facts {
		var err error
		about := session
		if x.agent != "" {
			about = x.agent
		}
		labels := eventlog.Labels{Run: x.run, Call: x.call}
		if x.c != nil {
			entries[i], err = eventlog.NewChunk(x.c, labels)
		} else {
			entries[i], err = eventlog.NewFact(about, x.f, labels)
		}
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}
