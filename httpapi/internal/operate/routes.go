package operate

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
	"github.com/helixd/helixd/snapshot/backup"
)

// Errors of routes that a server does not have.
var (
	ErrNoSubscribers = errors.New("httpapi: no subscribers here")
	ErrNoRevocation  = errors.New("httpapi: the NATS servers decide about subscribers")
	ErrNoBackup      = errors.New("httpapi: no backups of this log")
	ErrNoReload      = errors.New("httpapi: nothing to reload here")
)

// Routes serve operators: retention, backups, health, the rights of NATS clients.
type Routes struct {
	Log    eventlog.Log
	Loop   *engine.Loop
	States *snapshot.Store
	Logger *slog.Logger
	// ReadModels, if there are any, know which sessions have expired.
	ReadModels readmodel.Models
	Version    string
	// Beside is what backups have apart from the sessions.
	Beside []backup.Beside
	// PublicReady: everybody may read what GET /readyz says, apart from Degraded.
	PublicReady bool
	// Degraded returns what is not well, without asking anybody; nil: not known.
	Degraded func() []api.Degradation
	// Grant and Revoke make and end the rights of NATS clients; nil: see httpapi.Options.
	Grant  func(ctx context.Context, session string, ttl time.Duration) (api.Subscription, error)
	Revoke func(ctx context.Context, session string) error
	// Reread reads the configuration again; nil: there is none.
	Reread func(context.Context) (api.Reloaded, error)
}
