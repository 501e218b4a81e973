package httpapi

import (
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

// inspectRoutes answer questions, and change nothing.
type inspectRoutes struct {
	log        eventlog.Log
	loop       *engine.Loop
	states     *snapshot.Store
	readModels readmodel.Models // nil: folds answer what they can
	prices     *prices
	searches   *turns
	diffs      *turns // of two states
}

// newInspectRoutes returns the routes of a log.
func newInspectRoutes(log eventlog.Log, loop *engine.Loop, states *snapshot.Store, models readmodel.Models, prices *prices) *inspectRoutes {
	return &inspectRoutes{
		log: log, loop: loop, states: states, readModels: models, prices: prices,
		searches: newTurns(atOnce, true), diffs: newTurns(atOnce, true),
	}
}
