package embed

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

// DefaultCluster is the name of a cluster that has no other.
const DefaultCluster = "helix"

// routeReports is the share of vain attempts to reach a server that was there
// before, which are one a second, that are logged.
const routeReports = 60

// Cluster makes a server one of several that keep their streams together. All
// list one another in Routes, and need the same Name, User, Password and CA.
type Cluster struct {
	// Name is the cluster's; empty: DefaultCluster.
	Name string
	// Listen is the address for the other servers, "host:port", the port
	// fixed. Without Password and TLS, anyone who can reach it may do everything.
	Listen string
	// Routes are the addresses of all other servers, "nats://host:port". The
	// server's own may be among them, so that all can have the same list.
	Routes []string
	// User and Password, both or neither, are shown to the other servers and
	// wanted from them.
	User, Password string
	// TLS, if any of it is set, encrypts the traffic between servers.
	TLS TLS
}

// TLS are PEM files. Each server shows its certificate, which the others
// verify by the CA, when it connects as when it is connected to.
type TLS struct{ CA, Cert, Key string }

func (c Cluster) apply(opts *server.Options) error {
	host, port, err := splitAddress("cluster address", c.Listen)
	if err != nil {
		return err
	}
	switch {
	case port == 0:
		return errors.New("embed: cluster address: the other servers need a fixed port")
	case len(c.Routes) == 0:
		return errors.New("embed: cluster: no routes to the other servers")
	case (c.User == "") != (c.Password == ""):
		return errors.New("embed: cluster: User and Password go together")
	}
	opts.NoSystemAccount = false // by it the servers find one another's JetStream
	opts.ReconnectErrorReports = routeReports
	opts.Cluster = server.ClusterOpts{Name: c.Name, Host: host, Port: port, Username: c.User, Password: c.Password}
	for _, route := range c.Routes {
		u, err := url.Parse(route)
		if err != nil || u.Scheme != "nats" || u.Port() == "" {
			return errors.New("embed: cluster: a route must be nats://host:port") // not shown: it may hold a password
		}
		if c.User != "" {
			u.User = url.UserPassword(c.User, c.Password)
		}
		opts.Routes = append(opts.Routes, u)
	}
	if c.TLS != (TLS{}) {
		if opts.Cluster.TLSConfig, err = c.TLS.config(); err != nil {
			return fmt.Errorf("embed: cluster: TLS: %w", err)
		}
	}
	return nil
}

// config demands of both sides what the server's own parser does.
func (t TLS) config() (*tls.Config, error) {
	if t.CA == "" || t.Cert == "" || t.Key == "" {
		return nil, errors.New("CA, Cert and Key go together")
	}
	c, err := server.GenTLSConfig(&server.TLSConfigOpts{CaFile: t.CA, CertFile: t.Cert, KeyFile: t.Key, Verify: true})
	if err != nil {
		return nil, err
	}
	c.RootCAs = c.ClientCAs
	return c, nil
}

// hideClientPort is for a server without Options.Listen: nats-server starts its routes only
// if it listens for clients, too. The port is on the loopback interface and accepts no client
// that another port would refuse.
func (o Options) hideClientPort(opts *server.Options) {
	opts.Host, opts.Port, opts.DontListen = "127.0.0.1", server.RANDOM_PORT, false
	opts.Cluster.NoAdvertise = true // to the clients of others
	if o.WebSocket == nil {
		opts.Users = slices.DeleteFunc(opts.Users, func(u *server.User) bool { return u.Username == userOutside })
		opts.NoAuthUser = ""
	}
}

func splitAddress(what, address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("embed: %s: %w", what, err)
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("embed: %s %q: bad port", what, address)
	}
	return host, port, nil
}
