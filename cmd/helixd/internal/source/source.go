package source

import (
	"bufio"
	"bytes"
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

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi"
)

// ServerFlags are the flags of commands that use a daemon or, without one, NATS.
type ServerFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	NATS   string `name:"nats" help:"URL of a NATS deployment to use directly, in place of a daemon." env:"HELIX_NATS"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	flags.Trust
}

// DaemonFlags are the flags of commands that only a daemon can serve.
type DaemonFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	flags.Trust
}

// Connect returns the daemon. If the flags are not valid, its first request fails.
func (f DaemonFlags) Connect() *Source {
	client, err := f.Client()
	return &Source{client: client, bad: err, base: strings.TrimSuffix(f.Server, "/"), token: f.Token, Close: func() {}}
}

// Flags are those of commands that print what they read.
type Flags struct {
	ServerFlags
	JSON bool `help:"Print JSON."`
}

// Source answers requests as a daemon does. Call Close when it is used no more.
type Source struct {
	client *http.Client
	bad    error // why there is no client
	base   string
	token  string
	Close  func()
}

// Open returns the daemon or, with --nats, a server in this process that reads from
// NATS: so there is one way to read.
func (f ServerFlags) Open(ctx context.Context) (*Source, error) {
	return f.OpenAs(ctx, jetstream.Options{ReadOnly: true})
}

// OpenAs is Open with options for the log that it opens on NATS.
func (f ServerFlags) OpenAs(ctx context.Context, o jetstream.Options) (*Source, error) {
	if f.NATS == "" {
		return DaemonFlags{Server: f.Server, Token: f.Token, Trust: f.Trust}.Connect(), nil
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
	loop, err := engine.New(log, nil, nil)
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
	return &Source{
		client: &http.Client{Transport: transport}, base: "http://localhost",
		Close: func() {
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

// Get returns the body of an answer, or the error that the answer holds.
func (s *Source) Get(ctx context.Context, path string, header http.Header) (io.ReadCloser, error) {
	return s.Do(ctx, http.MethodGet, path, header, nil)
}

// Post sends a request as JSON, and returns the body of the answer.
func (s *Source) Post(ctx context.Context, path string, request any) (io.ReadCloser, error) {
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return s.Do(ctx, http.MethodPost, path, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(raw))
}

// Decode reads an answer, and closes it.
func Decode(answer io.ReadCloser, into any) error {
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("the daemon's answer is not JSON: %w", err)
	}
	return nil
}

// Do sends a request and returns the body of the answer, or the error that the
// answer holds.
func (s *Source) Do(ctx context.Context, method, path string, header http.Header, body io.Reader) (io.ReadCloser, error) {
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
	return nil, Refusal{message: problem.Error, Code: problem.Code}
}

// Refusal is a daemon's answer that is no success.
type Refusal struct{ message, Code string }

func (r Refusal) Error() string {
	return fmt.Sprintf("%s (%s)", terminal.Printable(r.message), terminal.Printable(r.Code))
}

// EscapeID is a session id as a path segment; "." and ".." would mean other
// paths.
func EscapeID(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") }

// maxLine is the longest line of an answer or of an input, in bytes.
const maxLine = 64 << 20

func Lines(r io.Reader) *bufio.Scanner {
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
