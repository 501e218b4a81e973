package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const clusterFile = `
nats:
  name: n1
  replicas: 3
  websocket: {listen: "127.0.0.1:8443", cert: ws.pem, key: ws-key.pem}
  cluster:
    listen: 10.0.0.1:6222
    routes: ["nats://10.0.0.1:6222", "nats://10.0.0.2:6222", "nats://10.0.0.3:6222"]
    user: nodes
    password: env:CLUSTER_PASSWORD
    tls: {ca: ca.pem, cert: n1.pem, key: n1-key.pem}
`

func TestLoadCluster(t *testing.T) {
	c, err := loadText(t, clusterFile, env{"CLUSTER_PASSWORD": "sk-routes"})
	require.NoError(t, err)
	assert.Equal(t, Cluster{
		Name: "helix", Listen: "10.0.0.1:6222",
		Routes: []string{"nats://10.0.0.1:6222", "nats://10.0.0.2:6222", "nats://10.0.0.3:6222"},
		User:   "nodes", Password: NewSecret("sk-routes"), TLS: TLS{CA: "ca.pem", Cert: "n1.pem", Key: "n1-key.pem"},
	}, c.NATS.Cluster)
	assert.Equal(t, 3, c.NATS.Cluster.Servers(), "its own route does not count twice")
	assert.Equal(t, WebSocket{Listen: "127.0.0.1:8443", Cert: "ws.pem", Key: "ws-key.pem"}, c.NATS.WebSocket)
	assert.Equal(t, "n1", c.NATS.Name)
	assert.Zero(t, c.NATS.Partitions)
	assert.NotContains(t, c.String(), "sk-routes")
}

// A node's own address may come from its environment.
func TestClusterFromTheEnvironment(t *testing.T) {
	c, err := Load("", env{
		"HELIX_NATS_REPLICAS": "3", "HELIX_NATS_PARTITIONS": "4", "HELIX_NATS_NAME": "n2", "HELIX_NATS_CLUSTER_LISTEN": ":6222",
		"HELIX_NATS_CLUSTER_ROUTES": "nats://a:6222, nats://b:6222", "HELIX_NATS_CLUSTER_USER": "u", "HELIX_NATS_CLUSTER_PASSWORD": "p",
		"HELIX_NATS_WEBSOCKET_LISTEN": "127.0.0.1:0",
	}.lookup)
	require.NoError(t, err)
	assert.Equal(t, []string{"nats://a:6222", "nats://b:6222"}, c.NATS.Cluster.Routes)
	assert.Equal(t, 4, c.NATS.Partitions)
	assert.Equal(t, "127.0.0.1:0", c.NATS.WebSocket.Listen)
}

func TestBadClusters(t *testing.T) {
	const routes = `routes: ["nats://h:6222", "nats://i:6222"]`
	for _, tt := range []struct{ name, text, want string }{
		{"no routes", "nats:\n  cluster: {listen: 'h:1'}\n", "helix.yaml:2: nats.cluster: needs routes to the other servers"},
		{"no listen", "nats:\n  cluster: {" + routes + "}\n", "helix.yaml:2: nats.cluster: needs a listen address"},
		{"listen", "nats:\n  cluster: {listen: h, " + routes + "}\n", "helix.yaml:2: nats.cluster.listen: must be host:port, the port not 0"},
		{"any port", "nats:\n  cluster: {listen: 'h:0', " + routes + "}\n", "helix.yaml:2: nats.cluster.listen: must be host:port, the port not 0"},
		{"name", "nats:\n  cluster: {name: a b, listen: 'h:1', " + routes + "}\n", "helix.yaml:2: nats.cluster.name: must not be empty, nor have spaces or control characters"},
		{"route", "nats:\n  cluster:\n    listen: h:1\n    routes:\n      - nats://h\n", "helix.yaml:5: nats.cluster.routes[0]: must be nats://host:port"},
		{"route with a password", "nats:\n  cluster:\n    listen: h:1\n    routes: ['nats://u:pw@h:1']\n", "helix.yaml:4: nats.cluster.routes[0]: must be nats://host:port"},
		{"route over WebSocket", "nats:\n  cluster:\n    listen: h:1\n    routes: ['ws://h:1']\n", "helix.yaml:4: nats.cluster.routes[0]: must be nats://host:port"},
		{"user alone", "nats:\n  cluster: {listen: 'h:1', user: u, " + routes + "}\n", "helix.yaml:2: nats.cluster: user and password need each other"},
		{"half of TLS", "nats:\n  cluster:\n    listen: h:1\n    " + routes + "\n    tls: {ca: c.pem}\n", "helix.yaml:5: nats.cluster.tls: ca, cert and key need each other"},
		{"TLS content", "nats:\n  cluster:\n    listen: h:1\n    " + routes + "\n    tls: {ca: \"a\\nb\", cert: c, key: k}\n", "helix.yaml:5: nats.cluster.tls.ca: must be a file's path, not its content"},
		{"too many replicas", "nats:\n  replicas: 5\n  cluster: {listen: 'h:1', " + routes + "}\n", "helix.yaml:2: nats.replicas: must not be more than the servers: nats.cluster.routes and this one"},
		{"its own route is no other server", "nats:\n  replicas: 3\n  cluster: {listen: 'h:6222', " + routes + "}\n", "helix.yaml:2: nats.replicas: must not be more than the servers: nats.cluster.routes and this one"},
		{"outside", "nats:\n  url: h\n  cluster: {listen: 'h:1', " + routes + "}\n  websocket: {listen: 'h:1'}\n  name: n\n", "helix.yaml:3: nats.cluster: is for the embedded server, which there is none of with nats.url\n" +
			"helix.yaml:4: nats.websocket: is for the embedded server, which there is none of with nats.url\n" +
			"helix.yaml:5: nats.name: is for the embedded server, which there is none of with nats.url"},
		{"server name", "nats: {name: a b}\n", "helix.yaml:1: nats.name: must not have spaces or control characters"},
		{"websocket", "nats:\n  websocket: {listen: h}\n", "helix.yaml:2: nats.websocket.listen: must be host:port"},
		{"websocket files", "nats:\n  websocket: {listen: 'h:1', cert: c.pem}\n", "helix.yaml:2: nats.websocket: cert and key need each other"},
		{"websocket nowhere", "nats:\n  websocket: {cert: c.pem, key: k.pem}\n", "helix.yaml:2: nats.websocket: needs a listen address"},
		{"websocket content", "nats:\n  websocket: {listen: 'h:1', cert: \"a\\nb\", key: k}\n", "helix.yaml:2: nats.websocket.cert: must be a file's path, not its content"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.text, nil)
			assert.EqualError(t, err, tt.want)
		})
	}
}
