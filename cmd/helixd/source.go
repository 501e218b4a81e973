package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi"
)

// placeFlags say where a command finds the log.
type placeFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	NATS   string `name:"nats" help:"URL of a NATS deployment to use directly, in place of a daemon." env:"HELIX_NATS"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	trustFlags
}

// daemonFlags say which daemon a command talks to.
type daemonFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	trustFlags
}

// source returns the daemon. Flags that can't be used fail its first request.
func (f daemonFlags) source() *source {
	client, err := f.client()
	return &source{client: client, bad: err, base: strings.TrimSuffix(f.Server, "/"), token: f.Token, close: func() {}}
}

// sourceFlags are of the commands that show what they read.
type sourceFlags struct {
	placeFlags
	JSON bool `help:"Print JSON."`
}

// source answers requests as a daemon does.
type source struct {
	client *http.Client
	bad    error // why there is no client
	base   string
	token  string
	close  func()
}

// open returns the daemon, or one in this process that reads from NATS: there
// is one way to read.
func (f placeFlags) open(ctx context.Context) (*source, error) {
	return f.openAs(ctx, jetstream.Options{ReadOnly: true})
}

// openAs is open with the log opened in another way.
func (f placeFlags) openAs(ctx context.Context, o jetstream.Options) (*source, error) {
	if f.NATS == "" {
		return daemonFlags{Server: f.Server, Token: f.Token, trustFlags: f.trustFlags}.source(), nil
	}
	nc, err := nats.Connect(f.NATS, nats.Name("helixd"))
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	log, err := jetstream.Open(ctx, nc, &o)
	if err != nil {
		nc.Close()
		return nil, err
	}
	loop, err := agentloop.New(log, nil, nil)
	if err != nil {
		nc.Close()
		return nil, err
	}
	api, err := httpapi.New(httpapi.Options{Log: log, Loop: loop, AllowUnauthenticated: true})
	if err != nil {
		nc.Close()
		return nil, err
	}
	pipe := newPipeListener()
	server := &http.Server{Handler: api}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(pipe)
	}()
	transport := &http.Transport{DialContext: pipe.dial}
	return &source{
		client: &http.Client{Transport: transport}, base: "http://localhost",
		close: func() {
			transport.CloseIdleConnections()
			api.Close()
			server.Close()
			<-done
			loop.Stop()
			log.Close()
			nc.Close()
		},
	}, nil
}

// get returns the body of an answer, or the error that it holds.
func (s *source) get(ctx context.Context, path string, header http.Header) (io.ReadCloser, error) {
	return s.do(ctx, http.MethodGet, path, header, nil)
}

func (s *source) do(ctx context.Context, method, path string, header http.Header, body io.Reader) (io.ReadCloser, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, body)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var problem struct{ Error, Code string }
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&problem) != nil || problem.Code == "" {
		return nil, errors.New(resp.Status)
	}
	return nil, refusal{message: problem.Error, code: problem.Code}
}

// refusal is a daemon's answer that is no success.
type refusal struct{ message, code string }

func (r refusal) Error() string {
	return fmt.Sprintf("%s (%s)", printable(r.message), printable(r.code))
}

// escapeID is a session id as a path segment; "." and ".." would mean other
// paths.
func escapeID(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") }

// maxLine is the longest line of an answer or of an input, in bytes.
const maxLine = 64 << 20

func lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	return s
}

// pipeListener is a listener whose connections are pipes in this process.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener; http.Server calls it once.
func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
