//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/checker"
	"github.com/helixd/helixd/integration/deployment"
)

// readyWithin is how long nodes may take to get ready once nothing is broken.
const readyWithin = 3 * time.Minute

// node is a helixd, and the links to it.
type node struct {
	*deployment.Node
	t        *trial
	data     string         // folder
	clients  *client.Client // by the clients' link
	link     *proxy         // of the clients
	peers    []*proxy
	route    string // where the others connect, in a cluster
	replicas int    // of its streams
	// at is held by a fault of the process from its beginning to its healing.
	at sync.Mutex

	mu     sync.Mutex
	mayEnd *atomic.Bool // the process may end: it was stopped, or can't help it; each start has its own
}

// prepare lays out the nodes that there are in the beginning.
func (t *trial) prepare() error {
	var first []*node
	var err error
	if t.nodes == 1 {
		var n *node
		n, err = t.newNode("node1", "")
		first = []*node{n}
	} else {
		first, err = t.newMembers("node", t.nodes, nil)
	}
	if err != nil {
		return err
	}
	t.setMembers(first)
	return t.disks.prepare(t)
}

// newMembers lays out nodes of a cluster: their addresses, links, folders and files. Each
// has a route to the others and to those that are there.
func (t *trial) newMembers(name string, count int, there []*node) ([]*node, error) {
	nats, err := deployment.FreeAddresses(count)
	if err != nil {
		return nil, err
	}
	routes, err := deployment.FreeAddresses(count)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, n := range there {
		others = append(others, n.route)
	}
	replicas := count
	if len(there) > 0 {
		replicas = there[0].replicas
	}
	var members []*node
	for i := range count {
		var links []*proxy
		var peers []string
		for j, other := range append(routes[:count:count], others...) {
			if j == i {
				continue
			}
			link, err := newProxy(other)
			if err != nil {
				return nil, err
			}
			t.links, links = append(t.links, link), append(links, link)
			peers = append(peers, fmt.Sprintf("%q", "nats://"+link.address()))
		}
		id := fmt.Sprint(name, len(there)+i+1)
		n, err := t.newNode(id, fmt.Sprintf(clusterConfig, id, nats[i], natsUser, natsPassword, replicas, routes[i], strings.Join(peers, ", ")))
		if err != nil {
			return nil, err
		}
		n.peers, n.route, n.replicas = links, routes[i], replicas
		n.NATS = deployment.Server{Address: nats[i], User: natsUser, Password: natsPassword}
		members = append(members, n)
	}
	return members, nil
}

// newNode lays out one node; nats is that section of its file.
func (t *trial) newNode(name, nats string) (_ *node, err error) {
	n := &node{t: t}
	config := fmt.Sprintf("durability: %s\ndisk: {minFree: 8MiB}\n", t.durability) + t.Config() + nats
	if n.Node, err = deployment.NewNode(t.binaries, t.folder, name, config); err != nil {
		return nil, err
	}
	n.data = filepath.Join(t.folder, name, "data")
	if err := os.MkdirAll(n.data, 0o700); err != nil {
		return nil, err
	}
	if n.link, err = newProxy(strings.TrimPrefix(n.URL, "http://")); err != nil {
		return nil, err
	}
	n.clients = deployment.Client("http://"+n.link.address(), checker.AnswerWithin)
	t.mu.Lock()
	t.ever = append(t.ever, n)
	t.mu.Unlock()
	return n, nil
}

// members are the nodes that clients use, and that must be ready when nothing is broken.
func (t *trial) members() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cluster
}

// clientsOf are the nodes as the checker sees them.
func (t *trial) clientsOf() (all []checker.Node) {
	for _, n := range t.members() {
		all = append(all, checker.Node{Name: n.Name, API: n.API, Clients: n.clients})
	}
	return all
}

func (t *trial) setMembers(members []*node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cluster = members
}

// everybody are all nodes that there have ever been.
func (t *trial) everybody() []*node {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ever
}

// Of NATS clients.
const natsUser, natsPassword = "chaos", "loopback"

const clusterConfig = `
nats:
  name: %s
  listen: %s
  user: %s
  password: %s
  replicas: %d
  partitions: 1
  cluster: {name: chaos, listen: %q, routes: [%s], user: route, password: loopback}
`

// start starts the process. It does not wait. That the process ends is a violation,
// unless it may.
func (n *node) start() error {
	if err := n.Start(); err != nil {
		return err
	}
	mayEnd, ended := new(atomic.Bool), n.Ended()
	n.mu.Lock()
	n.mayEnd = mayEnd
	n.mu.Unlock()
	go func() {
		<-ended
		if !mayEnd.Load() {
			n.t.Violate("", nil, "%s ended by itself: %s", n.Name, n.LastWords())
		}
	}()
	return nil
}

// expectEnd says whether the process may end from now on.
func (n *node) expectEnd(may bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mayEnd != nil {
		n.mayEnd.Store(may)
	}
}

// kill ends the process as the kernel would.
func (n *node) kill() {
	n.t.Died()
	n.expectEnd(true)
	n.Kill()
}

// interrupt ends the process as its operator would.
func (n *node) interrupt() error {
	n.expectEnd(true)
	return n.Interrupt(stopWithin)
}

// stopWithin is how long a daemon may take to stop.
const stopWithin = 2 * time.Minute

// over reports whether the process has ended.
func (n *node) over() bool {
	select {
	case <-n.Ended():
		return true
	default:
		return false
	}
}

// close ends the process for good.
func (n *node) close() {
	n.kill()
	n.link.close()
}

// readyIn waits until the node is ready.
func (n *node) readyIn(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(n.t.ctx, d)
	defer cancel()
	return deployment.Retry(ctx, 50*time.Millisecond, func() error { _, err := n.Ready(ctx); return err }) == nil
}

// allReady waits until every node is.
func (t *trial) allReady(d time.Duration) error {
	end := time.Now().Add(d)
	for _, n := range t.members() {
		if !n.readyIn(time.Until(end)) {
			t.Violate("", nil, "%s is not ready within %s though nothing is broken: %s", n.Name, d, n.LastWords())
			return context.Cause(t.ctx)
		}
	}
	return nil
}

// confess reports what a node has said of what must never be.
func (t *trial) confess() {
	for _, n := range t.everybody() {
		if line := checker.BadLine(n.Log()); line != "" {
			t.Violate("", nil, "%s says: %s", n.Name, line)
		}
	}
}
