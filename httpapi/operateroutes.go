package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot"
)

// Errors of routes that a server does not have.
var (
	errNoSubscribers = errors.New("httpapi: no subscribers here")
	errNoRevocation  = errors.New("httpapi: the NATS servers decide about subscribers")
	errNoBackup      = errors.New("httpapi: no backups of this log")
	errNoReload      = errors.New("httpapi: nothing to reload here")
)

// operateRoutes serve operators, and what else is not about a conversation.
type operateRoutes struct {
	log    eventlog.Log
	loop   *engine.Loop
	states *snapshot.Store
	logger *slog.Logger
	// readModels, if there are any, know which sessions have expired.
	readModels readmodel.Models
	version    string
	// publicReady: everybody may read all of what GET /readyz says.
	publicReady bool
	// granting and revoking make and end the rights of NATS clients; nil: see httpapi.Options.
	granting func(ctx context.Context, session string, ttl time.Duration) (api.Subscription, error)
	revoking func(ctx context.Context, session string) error
	// rereading reads the configuration again; nil: there is none.
	rereading func(context.Context) (api.Reloaded, error)
}
