package httpapi_test

import (
	"testing"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

// trafficListings: what is asked about all sessions together.
func trafficListings(t *testing.T, c *apiChecker) {
	a := c.server(t, memory.New(), nil, func(o *httpapi.Options) { o.ReadModels = &saidRows{fresh: behind} })
	for _, target := range []string{
		"/sessions?parentSessionId=s", "/sessions?forkedFrom=s", "/sessions?sort=updated", "/runs?sessionId=s&userId=u&agentType=writer&status=completed&from=2026-01-01&to=1800000000000&offset=0&limit=5",
		"/usage?by=model&sessionId=s&userId=u&agentType=writer&from=1&to=2026-02-01T00:00:00Z", "/usage",
		"/search?q=fog&sessionId=s&userId=u&agentType=writer&offset=0&limit=5", "/parked?sessionId=s&offset=0&limit=5", "/readyz",
	} {
		a.get(target).done(t)
		a.request("HEAD", target, "").done(t)
	}
	c.server(t, memory.New(), nil).get("/sessions?sort=updated").failed(t, 501, api.CodeNotImplemented)
	for _, bad := range []string{"/sessions?sort=size", "/runs?limit=0", "/usage?by=moon", "/search", "/parked?sessionId="} {
		a.get(bad).failed(t, 400, api.CodeInvalidRequest)
	}
}
