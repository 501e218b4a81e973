package httpapi

import (
	"log/slog"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/snapshot"
)

// streamRoutes answer with a session's history, then with what is live, then with its
// end.
type streamRoutes struct {
	log    eventlog.Log
	states *snapshot.Store
	logger *slog.Logger
	live   liveEvents
}

// newStreamRoutes returns the routes of a log.
func newStreamRoutes(log eventlog.Log, states *snapshot.Store, logger *slog.Logger) *streamRoutes {
	return &streamRoutes{log: log, states: states, logger: logger}
}
