package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// TestDegraded: /readyz lists a full disk and a used quota, metrics count them, and an alert about them needs no log.
func TestDegraded(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	free, known := embed.FreeBytes(t.TempDir())
	if !known {
		t.Skip("this operating system does not say how much room there is")
	}
	d := serveFile(t, clitest.Config(t, fmt.Sprintf(`
public: [/metrics]
disk: {minFree: %d}
tenants: {red: {sessions: 2}}
auth: {tokens: [{token: red, tenant: red}, {token: t}]}
`, free*6/10)), io.Discard, nil)
	require.NotContains(t, degraded(t, d), "quotas")
	for _, id := range []string{"a", "b"} {
		status, answer := ask(t, http.MethodPost, d.URL+"/sessions/"+id+"/chunks", "red", "",
			`{"type":"text_delta","agentId":"`+id+`","agentType":"x","step":0,"timestamp":1,"delta":"hi"}`)
		require.Equal(t, 200, status, answer)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := degraded(t, d)
		assert.Contains(c, all, "disk")
		assert.Contains(c, all, "quotas")
	}, time.Minute, 50*time.Millisecond)
	all := degraded(t, d)
	require.Regexp(t, `^\d+\.\d GiB are free; with less than \d+\.\d GiB \(disk\.minFree\) the node is read-only$`, all["disk"].Found)
	require.False(t, all["disk"].Problem)
	require.Equal(t, "the tenant red uses 100 % of its limit sessions", all["quotas"].Found)
	require.True(t, all["quotas"].Problem)
	comes(t, d, 1, "helixd_degraded", "check", "quotas")
	comes(t, d, 1, "helixd_degraded", "check", "disk")
	comes(t, d, 0, "helixd_degraded", "check", "replicas")
	comes(t, d, 1, "helixd_tenant_limit_used_ratio", "tenant", "red", "limit", "sessions")
	comes(t, d, 1, "helixd_ready")
	require.Positive(t, scrape(t, d).value("helixd_disk_free_bytes"))
}

// degraded returns what /readyz lists, by check.
func degraded(t *testing.T, d *Daemon) map[string]api.Degradation {
	t.Helper()
	status, answer := ask(t, http.MethodGet, d.URL+"/readyz", "t", "", "")
	require.Equal(t, 200, status, answer)
	var r api.Readiness
	require.NoError(t, json.Unmarshal([]byte(answer), &r))
	all := map[string]api.Degradation{}
	for _, f := range r.Degraded {
		require.Contains(t, healthChecks, f.Check)
		require.NotEmpty(t, f.Advice)
		all[f.Check] = f
	}
	return all
}

// replicas is a replicated log of which a test says how it is.
type replicas struct {
	eventlog.Log
	found eventlog.Replicas
	err   error
}

func (r replicas) Info() eventlog.Info {
	info := r.Log.Info()
	info.Durability = "replicated×3"
	return info
}

func (r replicas) Replicas(context.Context) (eventlog.Replicas, error) { return r.found, r.err }

func TestLookReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		found   eventlog.Replicas
		err     error
		missing int
		known   bool
		want    []string
	}{
		"all there": {found: eventlog.Replicas{Wanted: 3, Present: 3, Lag: 5, Skew: 20}, known: true},
		"one gone":  {found: eventlog.Replicas{Wanted: 3, Present: 2, Missing: []string{"n3"}}, missing: 1, known: true, want: []string{"replicas true n3"}},
		"lags":      {found: eventlog.Replicas{Wanted: 3, Present: 3, Lag: 50_000}, known: true, want: []string{"replicas false "}},
		"clock":     {found: eventlog.Replicas{Wanted: 3, Present: 3, Skew: 5_000}, known: true, want: []string{"clock false "}},
		"far clock": {found: eventlog.Replicas{Wanted: 3, Present: 3, Skew: 60_000}, known: true, want: []string{"clock true "}},
		"no quorum": {err: errors.New("no leader"), want: []string{"replicas true "}},
	} {
		missing, known, found := lookReplicas(t.Context(), replicas{memory.New(), tc.found, tc.err})
		require.Equal(t, tc.missing, missing, name)
		require.Equal(t, tc.known, known, name)
		var got []string
		for _, f := range found {
			require.NotEmpty(t, f.Found)
			require.NotEmpty(t, f.Advice)
			got = append(got, fmt.Sprint(f.Check, " ", f.Problem, " ", f.Target))
		}
		require.Equal(t, tc.want, got, name)
	}
}

func TestLookCertificates(t *testing.T) {
	cert, key := testkit.NewAuthority(t).Issue(t.TempDir(), "x", 1)
	c := config.Default()
	c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA = cert, key, t.TempDir()+"/none.pem"
	all, found := lookCertificates(c, time.Now().Add(testkit.CertificateLifetime-time.Hour))
	require.Len(t, all, 2)
	require.WithinDuration(t, time.Now().Add(testkit.CertificateLifetime), all[0].Ends, time.Minute)
	require.Len(t, found, 2)
	require.Regexp(t, `^tls\.cert expires on `, found[0].Found)
	require.True(t, found[0].Problem)
	require.Regexp(t, `^tls\.clientCA: open .*no such file`, found[1].Found)
	_, found = lookCertificates(c, time.Now())
	require.Len(t, found, 1, "only the one that can't be read")
}

func TestListingsOfAnIllReadModel(t *testing.T) {
	require.Empty(t, ofListings(readmodel.Fresh{Lag: 7}))
	require.Len(t, ofListings(readmodel.Fresh{Problem: "stuck", Parked: 2}), 2)
	require.Len(t, ofListings(readmodel.Fresh{Rebuilding: true}), 1)
	require.True(t, slices.ContainsFunc(ofQuota("red", "runs", 0.95), func(d api.Degradation) bool { return !d.Problem && d.Target == "red" }))
	require.Empty(t, ofQuota("red", "runs", 0.5))
}
