//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// readyWithin is how long nodes may take to get ready once nothing is broken.
const readyWithin = 3 * time.Minute

// node is a helixd as its own process.
type node struct {
	t      *trial
	name   string
	config string // file
	data   string // folder
	logs   string // file
	url    string // of HTTP, by the clients' link
	direct string // of HTTP
	nats   string // address for NATS clients; empty with one node
	link   *proxy // of the clients
	peers  []*proxy
	// at is held by a fault of the process from its beginning to its healing.
	at sync.Mutex

	mu     sync.Mutex
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has
	mayEnd bool          // it was told to, or can't help it
}

// prepare lays out the nodes: addresses, links, folders, files.
func (t *trial) prepare() error {
	const ofHTTP, ofNATS, ofRoutes = 0, 1, 2
	addresses := make([][]string, t.nodes)
	for i := range addresses {
		var err error
		if addresses[i], err = deployment.FreeAddresses(3); err != nil {
			return err
		}
	}
	for i, a := range addresses {
		n := &node{t: t, name: fmt.Sprintf("node%d", i+1), direct: "http://" + a[ofHTTP]}
		folder := filepath.Join(t.folder, n.name)
		n.config, n.data, n.logs = filepath.Join(folder, "helix.yaml"), filepath.Join(folder, "data"), filepath.Join(folder, "log")
		if err := os.MkdirAll(n.data, 0o700); err != nil {
			return err
		}
		var err error
		if n.link, err = newProxy(a[ofHTTP]); err != nil {
			return err
		}
		n.url = "http://" + n.link.address()
		var routes []string
		for j, other := range addresses {
			if len(addresses) == 1 || j == i {
				continue
			}
			link, err := newProxy(other[ofRoutes])
			if err != nil {
				return err
			}
			t.links = append(t.links, link)
			n.peers = append(n.peers, link)
			routes = append(routes, fmt.Sprintf("%q", "nats://"+link.address()))
		}
		cluster := ""
		if routes != nil {
			n.nats = a[ofNATS]
			cluster = fmt.Sprintf(clusterConfig, n.name, a[ofNATS], natsUser, natsPassword, len(addresses), a[ofRoutes], strings.Join(routes, ", "))
		}
		text := fmt.Sprintf("listen: %s\ndataDir: %q\ndurability: %s\nauth: {allowUnauthenticated: true}\ndisk: {minFree: 8MiB}\nlimits: {streams: 100000}\n", a[ofHTTP], n.data, t.durability) + cluster + t.tools.agents()
		if err := os.WriteFile(n.config, []byte(text), 0o600); err != nil {
			return err
		}
		t.cluster = append(t.cluster, n)
	}
	return t.disks.prepare(t)
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

// start starts the process. It does not wait.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	logs, err := os.OpenFile(n.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	cmd := exec.Command(n.t.binary, "serve", "--config", n.config)
	cmd.Stdout, cmd.Stderr, cmd.Dir = logs, logs, filepath.Dir(n.config)
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd, n.ended, n.mayEnd = cmd, make(chan struct{}), false
	go n.wait(cmd, n.ended)
	return nil
}

func (n *node) wait(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	n.mu.Lock()
	mayEnd := n.mayEnd // before anybody starts it again
	n.mu.Unlock()
	close(ended)
	if !mayEnd {
		n.t.violate("", nil, "%s ended by itself (%v): %s", n.name, err, n.lastWords())
	}
}

// lastWords is the end of the node's log.
func (n *node) lastWords() string {
	raw, _ := os.ReadFile(n.logs)
	return "…" + string(raw[max(0, len(raw)-2000):])
}

// expectEnd says that the process may end from now on.
func (n *node) expectEnd() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mayEnd = true
}

func (n *node) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s)
	}
}

// kill ends the process as the kernel would.
func (n *node) kill() {
	n.t.deaths.Add(1)
	n.expectEnd()
	n.signal(os.Kill)
	<-n.ended
}

// interrupt ends the process as its operator would, and reports whether it did
// so in time.
func (n *node) interrupt() bool {
	n.expectEnd()
	n.signal(os.Interrupt)
	select {
	case <-n.ended:
		return true
	case <-time.After(stopWithin):
		n.kill()
		return false
	}
}

// stopWithin is how long a daemon that was told to end may take.
const stopWithin = 2 * time.Minute

func (n *node) freeze() { n.signal(syscall.SIGSTOP) }
func (n *node) thaw()   { n.signal(syscall.SIGCONT) }

// over reports whether the process has ended.
func (n *node) over() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// close ends the process for good.
func (n *node) close() {
	if n.ended != nil {
		n.kill()
	}
	n.link.close()
}

// ready asks the node whether it is.
func (n *node) ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.direct+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := n.t.client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// readyIn waits until the node is ready.
func (n *node) readyIn(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(n.t.ctx, d)
	defer cancel()
	for !n.ready(ctx) {
		if deployment.Sleep(ctx, 50*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// allReady waits until every node is.
func (t *trial) allReady(d time.Duration) error {
	end := time.Now().Add(d)
	for _, n := range t.cluster {
		if !n.readyIn(time.Until(end)) {
			t.violate("", nil, "%s is not ready within %s though nothing is broken: %s", n.name, d, n.lastWords())
			return context.Cause(t.ctx)
		}
	}
	return nil
}

// bad are words that no node may ever say, whatever is broken: they tell of a
// panic, or of files that are damaged.
var bad = []string{"panic: ", "fatal error: ", "handler panicked", "DATA RACE", "corrupt input"}

// confessions returns what a node has said of what must never be.
func (t *trial) confessions() string {
	for _, n := range t.cluster {
		raw, _ := os.ReadFile(n.logs)
		for _, word := range bad {
			if i := bytes.Index(raw, []byte(word)); i >= 0 {
				from := bytes.LastIndexByte(raw[:i], '\n') + 1
				return n.name + " says: " + string(raw[from:min(len(raw), i+2000)])
			}
		}
	}
	return ""
}
