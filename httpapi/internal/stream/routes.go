package stream

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
)

// Routes answer with streams of a session's records.
type Routes struct {
	log    eventlog.Log
	states *snapshot.Store
	live   liveEvents
}

// New returns the routes of a log.
func New(log eventlog.Log, states *snapshot.Store) *Routes {
	return &Routes{log: log, states: states}
}
