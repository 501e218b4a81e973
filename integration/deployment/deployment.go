package deployment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Deployment is helixd nodes on one log.
type Deployment struct {
	Nodes []*Node
	// Servers are the NATS servers of an outside deployment, if it is one.
	Servers []*Process
	// Streams asks the NATS servers, wherever they are.
	Streams Streams
	// Durability is what the nodes say of the log.
	Durability string
}

// Alone makes one node with an embedded server, and does not start it. config is
// more of its configuration.
func Alone(b Binaries, dir, config string) (*Deployment, error) {
	n, err := NewNode(b, dir, "alone", config)
	return &Deployment{Nodes: []*Node{n}}, err
}

// For the NATS clients of an embedded server.
const user, password = "operator", "loopback"

// Embedded makes n nodes whose embedded servers keep a log together.
func Embedded(b Binaries, dir string, n int, config string) (*Deployment, error) {
	clients, err := FreeAddresses(n)
	if err != nil {
		return nil, err
	}
	routes, err := FreeAddresses(n)
	if err != nil {
		return nil, err
	}
	d := &Deployment{}
	for i := range n {
		name := fmt.Sprint("node", i+1)
		node, err := NewNode(b, dir, name, config+fmt.Sprintf(`
nats:
  name: %s
  listen: %q
  user: %s
  password: %s
  replicas: %d
  partitions: 1
  cluster: {name: deployment, listen: %q, routes: [%s], user: route, password: loopback}
`, name, clients[i], user, password, n, routes[i], urls(routes)))
		if err != nil {
			return nil, err
		}
		node.NATS = Server{Address: clients[i], User: user, Password: password}
		d.Nodes, d.Streams = append(d.Nodes, node), append(d.Streams, node.NATS)
	}
	return d, nil
}

// Outside makes n nodes on so many NATS servers that are no part of them, 1 or 3,
// with as many replicas.
func Outside(b Binaries, dir string, servers, n int, config string) (*Deployment, error) {
	clients, err := FreeAddresses(servers)
	if err != nil {
		return nil, err
	}
	routes, err := FreeAddresses(servers)
	if err != nil {
		return nil, err
	}
	d := &Deployment{}
	for i := range servers {
		name := fmt.Sprint("server", i+1)
		folder := filepath.Join(dir, name)
		file := filepath.Join(folder, "nats.conf")
		p, err := NewProcess(name, folder, b.NATSServer, "-c", file)
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("server_name: %s\nlisten: %q\njetstream {store_dir: data}\n", name, clients[i])
		if servers > 1 {
			text += fmt.Sprintf("cluster {name: outside, listen: %q, routes: [%s]}\n", routes[i], urls(routes))
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		d.Servers, d.Streams = append(d.Servers, p), append(d.Streams, Server{Address: clients[i]})
	}
	for i := range n {
		node, err := NewNode(b, dir, fmt.Sprint("node", i+1), config+
			fmt.Sprintf("\nnats: {url: %q, replicas: %d, partitions: 1}\n", "nats://"+strings.Join(clients, ",nats://"), servers))
		if err != nil {
			return nil, err
		}
		d.Nodes = append(d.Nodes, node)
	}
	return d, nil
}

// urls is a list of addresses as a configuration wants it.
func urls(addresses []string) string {
	return `"nats://` + strings.Join(addresses, `", "nats://`) + `"`
}

// Start starts everything, and waits until it is ready. After an error, too, it
// has to be closed.
func (d *Deployment) Start(ctx context.Context) error {
	for _, s := range d.Servers {
		if err := s.Start(); err != nil {
			return err
		}
	}
	if len(d.Servers) > 0 {
		if err := d.Streams.WaitUp(ctx); err != nil {
			return err
		}
	}
	for _, n := range d.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	for _, n := range d.Nodes {
		r, err := n.Ready(ctx)
		if err != nil {
			return err
		}
		d.Durability = r.Durability
	}
	return nil
}

// Close ends everything.
func (d *Deployment) Close() {
	for _, n := range d.Nodes {
		n.Kill()
	}
	for _, s := range d.Servers {
		s.Kill()
	}
}
