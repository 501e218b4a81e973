package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// dateStep is how exact the Date header of an answer is.
const dateStep = time.Second

// daemon looks at one through HTTP.
func (d *exam) daemon(ctx context.Context, base string) error {
	base = strings.TrimSuffix(base, "/")
	asked := d.now()
	answer, err := source.DaemonFlags{Server: base, Token: d.token(), Trust: d.cmd.Trust}.Connect().Ready(ctx)
	came := d.now()
	if err != nil {
		d.Problem(checkDaemon, base, err.Error(), "start helixd serve, or give its URL as --server")
		return err
	}
	switch {
	case answer.Daemon && answer.Error != "":
		d.Problem(checkDaemon, base, "answers "+answer.Status+": "+answer.Error, "wait until it has started, or correct what its answer names")
		return fmt.Errorf("%s gives no more information", base)
	case !answer.Daemon:
		d.Problem(checkDaemon, base, "answers "+answer.Status+", not as helixd does", "give the URL of helixd's HTTP server as --server")
		return fmt.Errorf("%s is not helixd", base)
	}
	r := answer.Readiness
	if r.Backend == "" { // it shows more to known callers
		report, found := d.Warning, base+" is ready"
		if !r.Ready {
			report, found = d.Problem, base+" is not ready"
		}
		report(checkDaemon, "", found+"; it shows more to known callers only", "give a token with the operation status: --token or HELIX_TOKEN")
		d.daemonClock(base, answer.Date, asked, came)
		return nil
	}
	switch {
	case r.Ready:
		d.OK(checkDaemon, "%s is ready, helixd %s, partitions: %d, agents: %s", base, r.Version, r.Partitions, strings.Join(r.Agents, ", "))
	case r.Refuses != "":
		d.Problem(checkDaemon, base, "takes no appends: "+r.Refuses, "change what it names: "+r.Refuses)
	case strings.HasPrefix(string(r.Durability), "replicated") && !r.Draining:
		d.Problem(checkDaemon, base, "is not ready: its log, which is "+string(r.Durability)+", does not answer: the quorum is lost, or a leader is being elected",
			"start the nodes that are down: more than half of them must run before anything can be read or stored")
	default:
		d.Problem(checkDaemon, base, "is not ready: its log does not answer, or it is being stopped",
			"look at the daemon's log, and at its NATS servers: helixd doctor --nats URL")
	}
	d.daemonDurability(r)
	d.daemonReplicas(r)
	d.daemonReadModels(r)
	d.degraded(r)
	d.daemonClock(base, answer.Date, asked, came)
	return nil
}

// token is the given one or, for the daemon of the configuration that
// was read, one from that configuration.
func (d *exam) token() string {
	if d.cmd.Token != "" || d.cmd.Server != "" {
		return d.cmd.Token
	}
	for _, t := range d.config.Auth.Tokens {
		if slices.Contains(t.Operations, "*") || slices.Contains(t.Operations, string(auth.OpStatus)) {
			return t.Token.Reveal()
		}
	}
	return ""
}

func (d *exam) daemonDurability(r api.Readiness) {
	c := doctor.Check{ID: doctor.CheckDurability, Status: doctor.Healthy, Found: fmt.Sprintf("%s: %s", r.Durability, r.Guarantee)}
	switch r.Durability {
	case eventlog.DurabilityUnknown:
		c.Status, c.Advice = doctor.Warning, "keep the streams on a cluster of three with nats.replicas: 3"
	case eventlog.DurabilityMemory:
		c.Status, c.Advice = doctor.Problem, "keep the streams in files: helixd doctor --nats URL lists those that are not"
	}
	d.Report(c)
}

// daemonReplicas reports whether all servers that keep the log are there.
func (d *exam) daemonReplicas(r api.Readiness) {
	switch n := r.Replicas; {
	case n == nil:
	case n.Present < n.Wanted:
		d.Problem(doctor.CheckReplicas, strings.Join(n.Missing, ", "),
			fmt.Sprintf("%s, but only %d of %d servers are there; missing: %s", r.Durability, n.Present, n.Wanted, strings.Join(n.Missing, ", ")),
			fmt.Sprintf("start the missing node, or replace it: with fewer than %d of %d nothing can be stored", n.Wanted/2+1, n.Wanted))
	default:
		d.OK(doctor.CheckReplicas, "%d of each record, all servers are there, the last one lacks %d operations", n.Wanted, n.Lag)
	}
}

// degraded reports what the daemon finds itself. Missing servers and listings are reported already.
func (d *exam) degraded(r api.Readiness) {
	for _, f := range r.Degraded {
		if f.Check == checkListings || f.Check == doctor.CheckReplicas && (r.Replicas == nil || r.Replicas.Present < r.Replicas.Wanted) {
			continue
		}
		report := d.Warning
		if f.Problem {
			report = d.Problem
		}
		report(f.Check, f.Target, f.Found, f.Advice)
	}
}

// daemonReadModels says how listings are, where the daemon keeps any.
func (d *exam) daemonReadModels(r api.Readiness) {
	switch f := r.ReadModels; {
	case f == nil:
	case f.Problem != "":
		d.Warning(checkListings, "", f.Problem, "look at the daemon's log; the file can be removed at any time, and is made again")
	case f.Rebuilding:
		d.Warning(checkListings, "", "the read models are being rebuilt; listings lack sessions", "wait until the rebuild is finished")
	case f.Parked > 0:
		d.Warning(checkListings, "", fmt.Sprintf("records that could not be used: %d", f.Parked), "helixd parked lists them; helixd verify says whether they are damaged")
	case !f.Current:
		d.OK(checkListings, "listings are about %d records behind the log", f.Lag)
	default:
		d.OK(checkListings, "listings are at the log's end")
	}
}

// daemonClock compares its clock with ours, as exactly as its answer allows.
func (d *exam) daemonClock(base, date string, asked, came time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		return
	}
	half := came.Sub(asked) / 2
	apart := at.Add(dateStep / 2).Sub(asked.Add(half)).Abs()
	c := doctor.Check{ID: doctor.CheckClock, Status: doctor.Healthy}
	switch sure := apart - half - dateStep/2; {
	case sure > doctor.SkewProblem:
		c.Status = doctor.Problem
	case sure > doctor.SkewWarning:
		c.Status = doctor.Warning
	default:
		c.Found = "that of " + base + " is within 2 s of this machine's"
		d.Report(c)
		return
	}
	c.Target, c.Found = base, fmt.Sprintf("the clocks of %s and of this machine are %s apart", base, apart.Round(time.Second))
	c.Advice = "set the clocks of both machines by NTP (chronyd, systemd-timesyncd)"
	d.Report(c)
}
