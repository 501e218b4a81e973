package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// readyWithin is how long a daemon may take to start.
const readyWithin = 2 * time.Minute

// daemon is helixd as its own process.
type daemon struct {
	url    string
	client *http.Client
	cmd    *exec.Cmd
	logs   *output
	ended  chan struct{} // closed when the process has ended
}

// output is what a process has written so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// startDaemon builds and starts a daemon whose agent's model is at the URL, and
// waits until it is ready.
func startDaemon(ctx context.Context, dir, durability, model string) (*daemon, error) {
	path := filepath.Join(dir, "helixd")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/helixd/helixd/cmd/helixd").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, out)
	}
	config := filepath.Join(dir, "helix.yaml")
	err := os.WriteFile(config, fmt.Appendf(nil,
		"agents:\n  writer:\n    model: {provider: openai, name: paced, apiKey: \"none\", baseURL: %q}\n", model), 0o600)
	if err != nil {
		return nil, err
	}
	address, err := deployment.FreeAddress()
	if err != nil {
		return nil, err
	}
	d := &daemon{
		url: "http://" + address, logs: &output{}, ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 10_000, DisableCompression: true, ReadBufferSize: 2 << 10}},
	}
	d.cmd = exec.Command(path, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"),
		"--durability", durability, "--listen", address, "--allow-unauthenticated")
	d.cmd.Stdout, d.cmd.Stderr = d.logs, d.logs
	d.cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1") // the heap's size, a line a collection
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.ended)
	}()
	if err := d.ready(ctx); err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

func (d *daemon) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("it took more than %s", readyWithin))
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := d.client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-d.ended:
			return fmt.Errorf("the daemon did not start: %s", d.logs)
		default:
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("the daemon did not get ready: %w: %s", err, d.logs)
		}
	}
}

// stop ends the process as its operator would, or, if that takes long, for good.
func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(os.Interrupt)
	select {
	case <-d.ended:
	case <-time.After(readyWithin):
		_ = d.cmd.Process.Kill()
		<-d.ended
	}
}

// dump ends the process, which tells of all its goroutines then.
func (d *daemon) dump() string {
	_ = d.cmd.Process.Signal(syscall.SIGQUIT)
	<-d.ended
	return d.logs.String()
}
