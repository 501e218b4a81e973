package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
)

// refusing is a log that takes no appends.
type refusing struct{ eventlog.Log }

func (l refusing) Info() eventlog.Info {
	info := l.Log.Info()
	info.Durability, info.Refuses = eventlog.DurabilityUnknown, "the server is too old"
	return info
}

// A node whose log takes no appends must get no work.
func TestNotReadyWithoutAppends(t *testing.T) {
	a := newAPIOn(t, refusing{memory.New()}, nil)
	got := a.get("/readyz")
	require.Equal(t, 503, got.status)
	var body api.Readiness
	got.decode(t, &body)
	require.False(t, body.Ready)
	require.Equal(t, "the server is too old", body.Refuses)
	require.Equal(t, eventlog.DurabilityUnknown, body.Durability)
	require.Equal(t, "acknowledged appends survive a killed client; nothing more is known", body.Guarantee)
}
