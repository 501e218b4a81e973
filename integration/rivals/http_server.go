package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"github.com/helixd/helixd/integration/deployment"
)

// requestWait is how long a request may take that is no stream.
const requestWait = time.Minute

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
	*deployment.Process
	dir, url string
	client   *http.Client
}

func newHTTPClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: (&net.Dialer{Timeout: requestWait}).DialContext, MaxIdleConnsPerHost: connections,
		DisableCompression: true, ReadBufferSize: followerBuffer, WriteBufferSize: followerBuffer,
	}}
}

// newHelixd builds helixd, once, unless HELIXD is its path, and starts it on a fresh folder.
func (b *bench) newHelixd(ctx context.Context) (*httpServer, error) {
	path := cmp.Or(os.Getenv("HELIXD"), filepath.Join(b.dir, "helixd"))
	if _, err := os.Stat(path); err != nil {
		if _, err := deployment.Build(ctx, b.dir, "", false); err != nil {
			return nil, err
		}
	}
	dir, err := b.tempDir("helixd")
	if err != nil {
		return nil, err
	}
	n, err := deployment.NewNode(deployment.Binaries{Helixd: path}, dir, "helixd", "durability: "+helixDialect.durability+"\n")
	if err == nil {
		err = n.Start()
	}
	if err != nil {
		return nil, err
	}
	s := &httpServer{dialect: helixDialect, Process: n.Process, dir: dir, url: n.URL, client: newHTTPClient(256)}
	if _, err := n.Ready(ctx); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
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
	program, err := filepath.Abs(filepath.Join(durableStreams, "server.mjs"))
	if err != nil {
		return nil, err
	}
	s := &httpServer{dialect: durableStreamsDialect, dir: dir, client: newHTTPClient(256)}
	if s.Process, err = deployment.NewProcess("durable streams", dir, node, program, filepath.Join(dir, "data")); err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, err
	}
	if s.url, err = s.printed(ctx); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

// address is what the Durable Streams server prints when it is ready.
var address = regexp.MustCompile(`(?m)^(http://127\.0\.0\.1:\d+)\n`)

// printed waits for the server's address.
func (s *httpServer) printed(ctx context.Context) (url string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, deployment.Within, fmt.Errorf("it was not ready after %s", deployment.Within))
	defer cancel()
	for {
		log, _ := os.ReadFile(s.Log()) // an error: nothing yet
		if m := address.FindSubmatch(log); m != nil {
			return string(m[1]), nil
		}
		select {
		case <-s.Ended():
			return "", fmt.Errorf("%s has ended: %s", s.Name, s.LastWords())
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return "", fmt.Errorf("%s: %w", s.Name, context.Cause(ctx))
		}
	}
}

// discard ends the process and removes its data.
func (s *httpServer) discard() {
	s.client.CloseIdleConnections()
	_ = s.Stop(deployment.Within) // else it was killed
	os.RemoveAll(s.dir)
}

func (s *httpServer) figure(value float64) figure {
	return figure{System: s.system, Durability: s.durability, Value: value}
}
