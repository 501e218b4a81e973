// Package record drafts the records of requests and runs.
package record

import (
	"context"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Draft is a record to be appended: Fact or Chunk.
type Draft struct {
	Fact  fact.Fact
	Chunk eventlog.Chunk
	Run   string
	Call  string
	Agent string // the session that a fact is about, if it is another one of the tree
}

// About labels facts as another session's of the tree.
func About(session string, facts []Draft) []Draft {
	for i := range facts {
		facts[i].Agent = session
	}
	return facts
}

// SetActor records in facts who asked for them.
func SetActor(ctx context.Context, facts []Draft) {
	for _, x := range facts {
		if x.Fact != nil {
			fact.SetActor(ctx, x.Fact)
		}
	}
}

// Entries encodes drafts. Those that name no session are about the given one.
func Entries(session string, facts []Draft) ([]eventlog.Entry, error) {
	entries := make([]eventlog.Entry, len(facts))
	for i, x := range facts {
		var err error
		about := session
		if x.Agent != "" {
			about = x.Agent
		}
		labels := eventlog.Labels{Run: x.Run, Call: x.Call}
		if x.Chunk != nil {
			entries[i], err = eventlog.NewChunk(x.Chunk, labels)
		} else {
			entries[i], err = eventlog.NewFact(about, x.Fact, labels)
		}
		if err != nil {
			return nil, err
		}
	}
	return entries, nil
}
