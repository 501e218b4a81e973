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
	User        string `json:"user"`
	Password    Secret `json:"password"`
	Token       Secret `json:"token"`
	TLS         TLS    `json:"tls"`
	// Listen is where an embedded server also takes NATS clients,
	// "host:port". Empty: nowhere.
	Listen   string `json:"listen"`
	Replicas int    `json:"replicas"` // 1, 3 or 5; default 1
	// Partitions is fixed when the log is created. 0, the default: 1
	// embedded, 16 on a cluster.
	Partitions int     `json:"partitions"`
	Cluster    Cluster `json:"cluster"`
}

// TLS are paths of PEM files, relative to the working directory. Cert and Key
// go together.
type TLS struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Cluster joins embedded servers to a cluster of their own.
type Cluster struct {
	Name   string   `json:"name"` // default "helix"
	Listen string   `json:"listen"`
	Routes []string `json:"routes"` // nats://host:port
}

// InlineCredentials reports whether Credentials is the content of a .creds
// file (which `credentials: file:PATH` gives) and not a path.
func (n NATS) InlineCredentials() bool {
	return strings.Contains(n.Credentials.Reveal(), "-----BEGIN ")
}
