package inspect

import (
	"log/slog"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

// Routes answer questions about sessions.
type Routes struct {
	log        eventlog.Log
	loop       *engine.Loop
	states     *snapshot.Store
	readModels readmodel.Models // nil: folds answer what they can
	prices     *Prices
	quota      *quota.Quota // nil: tenants have no limits
	logger     *slog.Logger
	searches   *web.Turns
	Diffs      *web.Turns // of two states
}

// New returns the routes of a log.
func New(log eventlog.Log, loop *engine.Loop, states *snapshot.Store, models readmodel.Models, prices *Prices, limits *quota.Quota, logger *slog.Logger) *Routes {
	return &Routes{
		log: log, loop: loop, states: states, readModels: models, prices: prices, quota: limits, logger: logger,
		searches: web.NewTurns(web.AtOnce, true), Diffs: web.NewTurns(web.AtOnce, true),
	}
}
