package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

// The checks of a daemon's own health, as helixd doctor names them.
const (
	checkCertificates = "certificates"
	checkDisk         = "disk"
	checkListings     = "listings"
	checkQuotas       = "quotas"
)

var healthChecks = []string{checkCertificates, doctor.CheckClock, checkDisk, checkListings, checkQuotas, doctor.CheckReplicas}

const (
	// headTimeout is how long the log may take to answer until it counts as not ready, as for GET /readyz.
	headTimeout = 2 * time.Second
	// lagWarning is how many operations a replica may lack.
	lagWarning = 10_000
	// quotaWarning is the share of a limit from which on it is reported, quotaProblem the limit.
	quotaWarning, quotaProblem = 0.9, 1.0
)

// replicatedLog is a log that may have replicas.
type replicatedLog interface {
	eventlog.Log
	Replicas(context.Context) (eventlog.Replicas, error)
}

// answers reports whether the log answers and takes appends.
func answers(ctx context.Context, log eventlog.Log) bool {
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	_, err := log.Head(ctx, "helixd-readiness") // any id: that there is none is an answer
	return (err == nil || errors.Is(err, eventlog.ErrSessionNotFound)) && log.Info().Refuses == ""
}

// lookReplicas looks at the servers that keep the log. missing is how many do not answer; if the
// quorum is lost, it is not known.
func lookReplicas(ctx context.Context, log replicatedLog) (missing int, known bool, found []api.Degradation) {
	// Without replicas the durability of an outside deployment is not known.
	if d := log.Info().Durability; !strings.HasPrefix(string(d), "replicated") && d != eventlog.DurabilityUnknown {
		return 0, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, headTimeout)
	defer cancel()
	r, err := log.Replicas(ctx)
	if err != nil {
		if ctx.Err() == nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			found = append(found, api.Degradation{
				Check: doctor.CheckReplicas, Problem: true, Found: "the log has no leader that answers: the quorum is lost, or a leader is being elected",
				Advice: "start the nodes that are down: more than half of them must run before anything can be read or stored",
			})
		}
		return 0, false, found
	}
	if r.Wanted <= 1 {
		return 0, false, nil
	}
	if r.Present < r.Wanted {
		found = append(found, api.Degradation{
			Check: doctor.CheckReplicas, Problem: true, Target: strings.Join(r.Missing, ", "),
			Found:  fmt.Sprintf("%d of %d servers are there; missing: %s", r.Present, r.Wanted, strings.Join(r.Missing, ", ")),
			Advice: fmt.Sprintf("start the missing node, or replace it: with fewer than %d of %d nothing can be stored", r.Wanted/2+1, r.Wanted),
		})
	}
	if r.Lag > lagWarning {
		found = append(found, api.Degradation{
			Check: doctor.CheckReplicas, Found: fmt.Sprintf("a replica is %d operations behind", r.Lag),
			Advice: "look again soon; if it stays behind, see to that server's disk, network and log",
		})
	}
	if skew := time.Duration(r.Skew) * time.Millisecond; skew > doctor.SkewWarning {
		found = append(found, api.Degradation{
			Check: doctor.CheckClock, Problem: skew > doctor.SkewProblem, Found: fmt.Sprintf("the clocks of this machine and of another server are %s apart", skew.Round(100*time.Millisecond)),
			Advice: "set the clocks of all machines by NTP (chronyd, systemd-timesyncd): time-outs and the times of records depend on both",
		})
	}
	return max(r.Wanted-r.Present, 0), true, found
}

// lookCertificates looks at the configured certificates.
func lookCertificates(c *config.Config, now time.Time) (all []settings.Certificate, found []api.Degradation) {
	all = settings.Certificates(c)
	for _, cert := range all {
		if d, bad := ofCertificate(cert, now); bad {
			found = append(found, d)
		}
	}
	return all, found
}

// ofCertificate says what is not well with a certificate.
func ofCertificate(cert settings.Certificate, now time.Time) (d api.Degradation, bad bool) {
	found, problem := cert.Finding(now)
	return api.Degradation{
		Check: checkCertificates, Problem: problem, Target: cert.File, Found: found, Advice: cert.Advice(),
	}, found != ""
}

// lookDisk looks at the room for the data folder. known is false if there is none, or the operating
// system can't say.
func lookDisk(c *config.Config) (free uint64, known bool, found []api.Degradation) {
	if c.NATS.URL != "" {
		return 0, false, nil
	}
	free, known = embed.FreeBytes(c.DataDir)
	if least := uint64(c.Disk.MinFree); known && free < 2*least {
		found = append(found, api.Degradation{
			Check: checkDisk, Problem: free < least, Target: c.DataDir,
			Found:  fmt.Sprintf("%.1f GiB are free; with less than %.1f GiB (disk.minFree) the node is read-only", float64(free)/(1<<30), float64(least)/(1<<30)),
			Advice: "make room, or let retention remove more (retention.maxAge, retention.maxBytes)",
		})
	}
	return free, known, found
}

// ofListings says what is not well with the read models. A lag passes by itself.
func ofListings(fresh readmodel.Fresh) (found []api.Degradation) {
	switch {
	case fresh.Problem != "":
		found = append(found, api.Degradation{
			Check: checkListings, Found: "the read models make no progress: " + fresh.Problem,
			Advice: "look at the daemon's log; the file can be removed at any time, and is made again",
		})
	case fresh.Rebuilding:
		found = append(found, api.Degradation{
			Check: checkListings, Found: "the read models are being rebuilt; listings lack sessions", Advice: "wait until the rebuild is finished",
		})
	}
	if fresh.Parked > 0 {
		found = append(found, api.Degradation{
			Check: checkListings, Found: fmt.Sprintf("records that could not be used: %d", fresh.Parked),
			Advice: "helixd parked lists them; helixd verify says whether they are damaged",
		})
	}
	return found
}

// ofQuota says that a tenant is near one of its limits.
func ofQuota(tenant, limit string, share float64) (found []api.Degradation) {
	if share < quotaWarning {
		return nil
	}
	return []api.Degradation{{
		Check: checkQuotas, Problem: share >= quotaProblem, Target: tenant,
		Found:  fmt.Sprintf("the tenant %s uses %.0f %% of its limit %s", tenant, 100*share, limit),
		Advice: fmt.Sprintf("raise tenants.%s.%s, or let the tenant use less: requests over the limit are refused", tenant, limit),
	}}
}

// shareable are the limits of which a tenant can use a share.
var shareable = []string{quota.Sessions, quota.Bytes, quota.Runs, quota.TokensPerDay, quota.USDPerDay}

// shares returns how much of its limits a tenant uses, by the limit's name. Limits that it does not
// have, and those of which it is not known what it uses, are not in it.
func shares(l quota.Limits, u tenantUse) map[string]float64 {
	all := map[string]float64{}
	share := func(name string, used, limit float64) {
		if limit > 0 {
			all[name] = used / limit
		}
	}
	if u.stored != nil {
		share(quota.Sessions, float64(u.stored.Sessions), float64(l.Sessions))
		share(quota.Runs, float64(u.stored.Runs), float64(l.Runs))
		share(quota.Bytes, float64(u.stored.Bytes), float64(l.Bytes))
	}
	if u.day != nil {
		share(quota.TokensPerDay, float64(u.day.Tokens), float64(l.TokensPerDay))
		share(quota.USDPerDay, u.day.USD, l.USDPerDay)
	}
	return all
}
