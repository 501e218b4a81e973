package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/httpapi/client"
)

// Node is a helixd process. Everybody may use it, unless its configuration has auth.
type Node struct {
	*Process
	URL   string         // of HTTP
	API   *client.Client // without a token; repeats no request
	Token string         // a bearer token that may do the operation status; empty: none is needed
	// NATS is where the embedded server takes clients; empty: nowhere.
	NATS Server
}

// Within bounds how long a process may take to get ready, or to stop.
const Within = 2 * time.Minute

// NewNode writes a node's configuration file. config is all of it but its address, its data
// folder and, unless it has them, auth and limits.
func NewNode(b Binaries, dir, name, config string) (*Node, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, name)
	file := filepath.Join(folder, "helix.yaml")
	n := &Node{URL: "http://" + address, API: Client("http://"+address, Within)}
	if n.Process, err = NewProcess(name, folder, b.Helixd, "serve", "--config", file); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("listen: %s\ndataDir: data\n%s", address, config)
	if !strings.Contains(config, "\nauth:") {
		text += "\nauth: {allowUnauthenticated: true}\n"
	}
	if !strings.Contains(config, "\nlimits:") {
		text += "\nlimits: {streams: 100000}\n" // all clients are on one address
	}
	return n, os.WriteFile(file, []byte(text), 0o600)
}

// Readiness is what a node says of itself.
type Readiness struct {
	Durability, Guarantee string
	Partitions            int
	Replicas              struct{ Missing []string } // servers; empty unless the token may see them
}

var prober = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Ready waits until the node serves.
func (n *Node) Ready(ctx context.Context) (r Readiness, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Within, fmt.Errorf("it took more than %s", Within))
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.URL+"/readyz", nil)
		if err != nil {
			return r, err
		}
		if n.Token != "" {
			req.Header.Set("Authorization", "Bearer "+n.Token)
		}
		if resp, err := prober.Do(req); err == nil {
			err = json.NewDecoder(resp.Body).Decode(&r)
			resp.Body.Close()
			if err == nil && resp.StatusCode == http.StatusOK {
				return r, nil
			}
		}
		select {
		case <-n.Ended():
			return r, fmt.Errorf("%s has ended: %s", n.Name, n.LastWords())
		case <-ctx.Done():
			return r, fmt.Errorf("%s is not ready: %w: %s", n.Name, context.Cause(ctx), n.LastWords())
		case <-time.After(2 * time.Millisecond):
		}
	}
}
