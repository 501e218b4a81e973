package config

import "strings"

// NATS says where the log lives: in an embedded server, or, with a URL, in an
// existing deployment.
type NATS struct {
	// URL is the existing deployment's addresses, comma-separated. Empty:
	// embedded.
	URL string `json:"url"`
	// Credentials is the path of a .creds file, relative to the working
	// directory, or the file's content; see InlineCredentials.
	Credentials Secret `json:"credentials"`
	User        string `json:"user"`     // of the existing deployment, or of an embedded server's clients
	Password    Secret `json:"password"` // that goes with user
	Token       Secret `json:"token"`    // in place of user and password
	TLS         TLS    `json:"tls"`
	// Listen is where an embedded server also takes NATS clients,
	// "host:port". Empty: nowhere.
	Listen string `json:"listen"`
	// WebSocket is where it takes them over WebSocket.
	WebSocket WebSocket `json:"websocket"`
	// Name is the embedded server's, without spaces; in a cluster no other has
	// it. Empty: in a cluster one made of the host's name and Cluster.Listen
	// at the first start.
	Name string `json:"name"`
	// Replicas are 1, 3 or 5; default 1. More than one need a URL or a Cluster.
	Replicas int `json:"replicas"`
	// Partitions is how many streams share the log's sessions, at most 64. 0, the default: those
	// that there are, or for a new log 1, with replicas 16. More than there are grow the log,
	// which can't shrink: see clustering.md.
	Partitions  int         `json:"partitions"`
	Cluster     Cluster     `json:"cluster"`
	Subscribers Subscribers `json:"subscribers"`
}

// WebSocket is an address for NATS clients over WebSocket. Those in web pages
// need to be of cors.origins.
type WebSocket struct {
	Listen string `json:"listen"` // host:port; empty: nowhere
	// Cert and Key are paths of PEM files, relative to the working directory;
	// with them it is wss.
	Cert string `json:"cert"`
	Key  string `json:"key"` // the key of cert
}

// TLS are paths of PEM files, relative to the working directory. Cert and Key
// go together.
type TLS struct {
	CA   string `json:"ca"`   // the authorities that are trusted; empty: the system's
	Cert string `json:"cert"` // the certificate that is shown to the other side
	Key  string `json:"key"`  // its key
}

// Cluster joins embedded servers to a cluster of their own. All need the same
// Name, User, Password and CA.
type Cluster struct {
	Name string `json:"name"` // default "helix"
	// Listen is where the other servers connect, "host:port". Empty: there
	// are none.
	Listen string `json:"listen"`
	// Routes are all other servers, nats://host:port; this one may be among
	// them.
	Routes []string `json:"routes"`
	// User and Password, both or neither, are shown to the other servers and
	// wanted from them.
	User     string `json:"user"`
	Password Secret `json:"password"` // that goes with user
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
