package doctor

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

// endsSoon is how long before a certificate's end a warning is reported.
const endsSoon = 14 * 24 * time.Hour

// connection reports the connected server. It returns an error if there is none.
func (x *exam) connection() error {
	rtt, err := x.nc.RTT()
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	where := x.nc.ConnectedUrlRedacted()
	if x.opts.Inside {
		where = "inside this process"
	}
	where += ", server " + x.nc.ConnectedServerName()
	if cluster := x.nc.ConnectedClusterName(); cluster != "" {
		where += " of cluster " + cluster
	}
	x.OK(CheckConnection, "%s, round trip %s", where, rtt.Round(10*time.Microsecond))
	return nil
}

// security reports how the connection is protected, and warns if others could read it or
// use the server.
func (x *exam) security() {
	if x.opts.Inside {
		return
	}
	who := x.identity()
	state, err := x.nc.TLSConnectionState()
	if err == nil {
		if certs := state.PeerCertificates; len(certs) > 0 && certs[0].NotAfter.Sub(x.opts.Now()) < endsSoon {
			x.Warning(CheckSecurity, "", fmt.Sprintf("the server's certificate ends at %s", certs[0].NotAfter.UTC().Format(time.RFC3339)),
				"renew the certificate of the NATS server: after its end helixd can't connect")
			return
		}
		x.OK(CheckSecurity, "TLS, %s", who)
		return
	}
	if isLoopback(x.nc.ConnectedAddr()) {
		x.OK(CheckSecurity, "no TLS, on this machine, %s", who)
		return
	}
	c := Check{ID: CheckSecurity, Status: Warning, Found: "no TLS, " + who}
	c.Advice = "set up TLS on the NATS server, and give nats.url as tls://… (nats.tls.ca for a CA of your own): who can read the network reads the sessions"
	if !x.nc.AuthRequired() {
		c.Advice += "; and let only helixd's user in: who can reach the server can change the sessions"
	}
	x.Report(c)
}

// identity returns the user of the connection.
func (x *exam) identity() string {
	o := x.nc.Opts
	at, _ := url.Parse(x.nc.ConnectedUrl())
	switch {
	case o.UserJWT != nil:
		return "with a credentials file"
	case o.Nkey != "":
		return "with an nkey"
	case o.User != "":
		return "as user " + o.User
	case at != nil && at.User != nil:
		return "with what is in the URL"
	case o.Token != "":
		return "with a token"
	}
	return "without credentials"
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && ip != nil && ip.IsLoopback()
}

// version checks the connected server's version.
func (x *exam) version(context.Context) error {
	x.judge(x.nc.ConnectedServerName(), x.nc.ConnectedServerVersion())
	return nil
}

// judge reports whether a server is new enough.
func (x *exam) judge(server, version string) bool {
	err := link.CheckServer(version)
	if err != nil {
		x.Problem(CheckVersions, server, fmt.Sprintf("server %s runs nats-server %s", server, version),
			fmt.Sprintf("upgrade server %s to nats-server %s or later: %s", server, link.LeastServer, link.LeastReason))
	}
	return err == nil
}

// servers checks the versions of all servers with a replica of a stream.
func (x *exam) servers(ctx context.Context) error {
	here := x.nc.ConnectedServerName()
	wanted := map[string]bool{here: true}
	for _, s := range x.existing(nil) {
		for _, name := range streams.ServersOf(s) {
			wanted[name] = true
		}
	}
	versions := map[string]string{}
	if !x.denied[streams.PeersSubject] {
		var err error
		asked := x.opts.Now()
		versions, err = streams.AskPeers(ctx, x.nc, wanted, func(p streams.Peer) { x.readClock(p.Name, p.Time, asked, x.opts.Now()) })
		if err != nil {
			return err
		}
	}
	versions[here] = x.nc.ConnectedServerVersion()
	var good, silent []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		version, known := versions[name]
		if !known {
			silent = append(silent, name)
			continue
		}
		if name == here && link.CheckServer(version) != nil { // already reported
			continue
		}
		if x.judge(name, version) {
			good = append(good, name+" "+version)
		}
	}
	if len(silent) > 0 {
		x.Warning(CheckVersions, listing(silent), "did not say their version: "+listing(silent),
			fmt.Sprintf("check that they run nats-server %s or later (nats server list), and allow helixd's NATS user to publish to %s, or doctor can't read their versions",
				link.LeastServer, streams.PeersSubject))
	}
	if len(good) == len(wanted) {
		x.OK(CheckVersions, "%s (%s or later is needed)", listing(good), link.LeastServer)
	}
	return nil
}
