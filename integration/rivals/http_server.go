package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// serverWait is how long a server may take to start or to stop.
	serverWait = time.Minute
	// requestWait is how long a request may take that is no stream.
	requestWait = time.Minute
)

// dialect is how a server is spoken to over HTTP.
type dialect struct {
	system, durability string
	// path is the URL's path of a session to append to.
	path        func(session string) string
	contentType string
	// open, between and end are around the chunks of an append.
	open, between, end string
	// creates: a session has to be created first, by PUT.
	creates bool
	// stream is the path and query of a session's events from the first one on.
	stream func(session string) string
	// read is the path and query of all that a session holds.
	read func(session string) string
}

var (
	helixDialect = dialect{
		system: "helixd", durability: "fsync", contentType: "application/x-ndjson", between: "\n",
		path:   func(s string) string { return "/sessions/" + s + "/chunks" },
		stream: func(s string) string { return "/sse?sessionId=" + s },
		read:   func(s string) string { return "/sessions/" + s + "/records" },
	}
	durableStreamsDialect = dialect{
		system: "Durable Streams (npm)", durability: "fdatasync", contentType: "application/json",
		open: "[", between: ",", end: "]", creates: true,
		path:   func(s string) string { return "/" + s },
		stream: func(s string) string { return "/" + s + "?offset=-1&live=sse" },
		read:   func(s string) string { return "/" + s + "?offset=-1" },
	}
)

// httpServer is a server process of our own, on a port of the loopback address.
type httpServer struct {
	dialect
	dir, url string
	cmd      *exec.Cmd
	done     chan error // receives what cmd.Wait returned
	log      *os.File
	client   *http.Client
}

// start starts the command, whose output goes to a file.
func (s *httpServer) start(cmd *exec.Cmd) (out io.Reader, err error) {
	s.cmd, s.done = cmd, make(chan error, 1)
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.Stdout, cmd.Stderr = w, s.log
	// A Ctrl-C is ours to hand on, when its last figure is taken.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	go func() { s.done <- cmd.Wait() }()
	return r, nil
}

func newHTTPClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: requestWait}).DialContext, MaxIdleConnsPerHost: connections,
		DisableCompression: true, ReadBufferSize: followerBuffer, WriteBufferSize: followerBuffer,
	}}
}

// newHelixd builds helixd, once, and starts it on a fresh folder.
func (b *bench) newHelixd(ctx context.Context) (*httpServer, error) {
	path := filepath.Join(b.dir, "helixd")
	if _, err := os.Stat(path); err != nil {
		build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/helixd")
		build.Dir = filepath.Join("..", "..")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build (rivals runs in its own folder): %w: %s", err, out)
		}
	}
	dir, err := b.tempDir("helixd")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &httpServer{dialect: helixDialect, dir: dir, url: "http://" + address, client: newHTTPClient(256)}
	// All clients are one caller, who may have 312 streams or so by default.
	config := filepath.Join(dir, "helix.yaml")
	if err := os.WriteFile(config, []byte("limits: {streams: 2000}\n"), 0o600); err != nil {
		return nil, err
	}
	out, err := s.start(exec.Command(path, "serve", "--config", config, "--listen", address, "--data-dir", filepath.Join(dir, "data"),
		"--durability", s.durability, "--allow-unauthenticated"))
	if err != nil {
		return nil, fmt.Errorf("helixd: %w", err)
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the process
	return s, s.ready(ctx)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ready waits until a helixd takes requests.
func (s *httpServer) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, serverWait)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := s.client.Do(req)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(res.Status)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case exit := <-s.done:
			s.done <- exit
			return s.failed(fmt.Errorf("it ended: %w", errors.Join(exit, err)))
		case <-ctx.Done():
			s.discard()
			return s.failed(errors.Join(context.Cause(ctx), err))
		}
	}
}

func (s *httpServer) failed(err error) error {
	log, _ := os.ReadFile(s.log.Name())
	return fmt.Errorf("%s: %w: %s", s.system, err, bytes.TrimSpace(log))
}

// durableStreams is the folder of the npm package.
const durableStreams = "durable-streams"

var errNoDurableStreams = errors.New("the Durable Streams server is not installed: (cd integration/rivals/" + durableStreams + " && npm ci), with Node.js 20 or later")

// newDurableStreams starts the Durable Streams server of npm on a fresh folder.
func (b *bench) newDurableStreams(ctx context.Context) (*httpServer, error) {
	if _, err := os.Stat(filepath.Join(durableStreams, "node_modules")); err != nil {
		return nil, errNoDurableStreams
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errNoDurableStreams
	}
	dir, err := b.tempDir("durable-streams")
	if err != nil {
		return nil, err
	}
	s := &httpServer{dialect: durableStreamsDialect, dir: dir, client: newHTTPClient(256)}
	cmd := exec.Command(node, "server.mjs", dir)
	cmd.Dir = durableStreams
	out, err := s.start(cmd)
	if err != nil {
		return nil, fmt.Errorf("durable streams: %w", err)
	}
	found := make(chan string, 1)
	go func() { // it ends with the process
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url := lines.Text(); strings.HasPrefix(url, "http://127.0.0.1:") {
				found <- url
				break
			}
		}
		io.Copy(io.Discard, out) //nolint:errcheck // as above
	}()
	select {
	case s.url = <-found:
		return s, nil
	case exit := <-s.done:
		s.done <- exit
		return nil, s.failed(fmt.Errorf("it ended: %w", errors.Join(exit)))
	case <-time.After(serverWait):
		s.discard()
		return nil, fmt.Errorf("durable streams: it was not ready after %s", serverWait)
	case <-ctx.Done():
		s.discard()
		return nil, context.Cause(ctx)
	}
}

// discard ends the process and removes its data.
func (s *httpServer) discard() {
	s.client.CloseIdleConnections()
	s.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	select {
	case exit := <-s.done:
		s.done <- exit
	case <-time.After(serverWait):
		s.cmd.Process.Kill() //nolint:errcheck // it may have ended
		s.done <- <-s.done
	}
	s.log.Close()
	os.RemoveAll(s.dir)
}

func (s *httpServer) figure(value float64) figure {
	return figure{System: s.system, Durability: s.durability, Value: value}
}
