package config

import "strings"

// NATS says where the log lives: in an embedded server, or, with a URL, in an
// existing deployment.
type NATS struct {
	// URL is the addresses of an existing deployment, comma-separated. Empty: an
	// embedded server.
	URL string `json:"url"`
	// Credentials is the path of a .creds file, relative to the working directory, or,
	// with file:PATH, its content.
	Credentials Secret `json:"credentials"`
	User        string `json:"user"`     // the user at the existing deployment, or of the embedded server's clients
	Password    Secret `json:"password"` // the password of user
	Token       Secret `json:"token"`    // instead of user and password
	TLS         TLS    `json:"tls"`
	// Listen is the address at which an embedded server accepts NATS clients,
	// "host:port". Empty: none.
	Listen string `json:"listen"`
	// WebSocket is where it takes them over WebSocket.
	WebSocket WebSocket `json:"websocket"`
	// Name is the embedded server's name, without spaces, unique in a cluster. Empty:
	// in a cluster, the first start makes one from the host's name and cluster.listen.
	Name string `json:"name"`
	// Replicas is the number of replicas: 1, 3 or 5; default 1. More than one need a
	// url or a cluster.
	Replicas int `json:"replicas"`
	// Partitions is how many streams share the log's sessions, at most 64. 0, the
	// default: as many as the log has; a new log has 1, with replicas 16. A larger
	// number grows the log, which can't shrink: see docs/operations/clustering.md.
	Partitions  int         `json:"partitions"`
	Cluster     Cluster     `json:"cluster"`
	Subscribers Subscribers `json:"subscribers"`
}

// WebSocket is an address for NATS clients over WebSocket. Those in web pages
// need to be of cors.origins.
type WebSocket struct {
	Listen string `json:"listen"` // the address for NATS clients over WebSocket, "host:port"; empty: none
	// Cert is the path of a PEM file, relative to the working directory; with it and
	// key, clients use wss.
	Cert string `json:"cert"`
	Key  string `json:"key"` // the key of cert
}

// TLS are paths of PEM files, relative to the working directory. Cert and Key
// go together.
type TLS struct {
	CA   string `json:"ca"`   // the trusted authorities; empty: the system's
	Cert string `json:"cert"` // the certificate that is shown to the other side
	Key  string `json:"key"`  // the private key of cert
}

// Cluster joins embedded servers to their own cluster. All need the same
// Name, User, Password and CA.
type Cluster struct {
	Name string `json:"name"` // default "helix"
	// Listen is the address at which the other servers connect, "host:port". Empty: no
	// cluster.
	Listen string `json:"listen"`
	// Routes are the addresses of all other servers, nats://host:port; this server may
	// be among them.
	Routes []string `json:"routes"`
	// User is the name with which the servers of the cluster authenticate to each
	// other, together with password.
	User     string `json:"user"`
	Password Secret `json:"password"` // the password of user
	// TLS needs all three files: each server shows its certificate.
	TLS TLS `json:"tls"`
}

// Servers is how many servers the cluster has, this one included.
func (c Cluster) Servers() int {
	n := 1
	for _, route := range c.Routes {
		if route != "nats://"+c.Listen {
			n++
		}
	}
	return n
}

// InlineCredentials reports whether Credentials is the content of a .creds
// file (which `credentials: file:PATH` gives) and not a path.
func (n NATS) InlineCredentials() bool {
	return strings.Contains(n.Credentials.Reveal(), "-----BEGIN ")
}
