package agentloop

import (
	"context"

	"github.com/helixd/helixd/projector"
)

// RemoteAgent is an agent of another server.
type RemoteAgent struct{ Name string }

type remoteAgent struct{ RemoteAgent }

func (d *definition) linkRemotes() error { return nil }

func (t *task) runRemote(context.Context, *Call, projector.Call, *remoteAgent) error { return nil }
