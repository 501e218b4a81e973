package source

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// ServerFlags are the flags of commands that use a daemon or, without one, NATS.
type ServerFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	NATS   string `name:"nats" help:"URL of a NATS deployment to use directly, in place of a daemon." env:"HELIX_NATS"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	flags.Trust
}

// DefaultServer is where a daemon is, by default.
const DefaultServer = "http://" + config.DefaultListen

// DaemonFlags are the flags of commands that only a daemon can serve.
type DaemonFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	flags.Trust
}

// Connect returns the daemon. If the flags are not valid, each request fails.
func (f DaemonFlags) Connect() *Source { return f.connect(-1) }

// ConnectPatiently is Connect for commands that stay while a daemon restarts: what can be
// repeated without harm is repeated for about a minute. It fails at once if there is no
// daemon when the command begins.
func (f DaemonFlags) ConnectPatiently(ctx context.Context) (*Source, error) {
	answer, err := f.Connect().Get(ctx, "/healthz", nil)
	if none, ok := errors.AsType[noDaemon](err); ok {
		return nil, none
	}
	if err == nil {
		answer.Close()
	}
	return f.connect(patience), nil
}

// patience is how often a request is repeated: with waits of 1/4 to 30 s.
const patience = 8

func (f DaemonFlags) connect(retries int) *Source {
	transport, err := f.Client()
	u, bad := url.Parse(f.Server)
	if err == nil && (bad != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		err = fmt.Errorf("%q is not the URL of a daemon, such as http://127.0.0.1:8080", f.Server)
	}
	if err != nil {
		return newSource("http://localhost", "", &http.Client{Transport: unusable{err}}, -1)
	}
	return newSource(f.Server, f.Token, transport, retries)
}

// unusable fails every request.
type unusable struct{ error }

func (u unusable) RoundTrip(*http.Request) (*http.Response, error) { return nil, u }

// Flags are those of commands that print what they read.
type Flags struct {
	ServerFlags
	JSON bool `help:"Print JSON."`
}

// Source is a client whose requests a daemon answers, or a server in this process.
// Unless it is connected patiently, no request is repeated, and none has a time limit. Call Close when it is used no
// more.
type Source struct {
	*client.Client
	Close func()
}

func newSource(server, token string, transport *http.Client, retries int) *Source {
	o := &client.Options{Token: client.StaticToken(token), HTTPClient: transport, MaxRetries: retries, RetryBase: time.Second / 4}
	if retries < 0 {
		o.Idle = math.MaxInt64
	}
	return &Source{Close: func() {}, Client: client.New(server, o)}
}

// Open returns the daemon or, with --nats, a server in this process that reads from
// NATS: so there is one way to read.
func (f ServerFlags) Open(ctx context.Context) (*Source, error) {
	return f.OpenAs(ctx, jetstream.Options{ReadOnly: true})
}

// OpenAs is Open with options for the log that it opens on NATS.
func (f ServerFlags) OpenAs(ctx context.Context, o jetstream.Options) (s *Source, err error) {
	if f.NATS == "" {
		return DaemonFlags{Server: f.Server, Token: f.Token, Trust: f.Trust}.Connect(), nil
	}
	nc, err := nats.Connect(f.NATS, nats.Name("helixd"))
	if err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	opened := []func(){nc.Close}
	closeAll := func() {
		for _, f := range slices.Backward(opened) {
			f()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	log, err := jetstream.Open(ctx, nc, &o)
	if err != nil {
		return nil, err
	}
	opened = append(opened, func() { log.Close() })
	loop, err := engine.New(log, nil, nil)
	if err != nil {
		return nil, err
	}
	opened = append(opened, loop.Stop)
	api, err := httpapi.New(httpapi.Options{Log: log, Loop: loop, AllowUnauthenticated: true})
	if err != nil {
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
	s = newSource("http://localhost", "", &http.Client{Transport: transport}, -1)
	s.Close = func() {
		transport.CloseIdleConnections()
		api.Close()
		server.Close()
		<-done
		closeAll()
	}
	return s, nil
}

// Get requests an answer as it is written. Everything in the request is of the command line:
// if the daemon finds that invalid, it is misused.
func (s *Source) Get(ctx context.Context, path string, query url.Values) (*remotehttp.Response, error) {
	answer, err := s.Send(ctx, remotehttp.Request{Method: http.MethodGet, Route: path, Query: query, Accept: "*/*"})
	if refused, ok := errors.AsType[refusal](err); ok && refused.cause.Code == string(api.CodeInvalidRequest) {
		err = flags.Misused(err)
	}
	return answer, err
}

// Send sends any request. An answer that is no success is an error.
func (s *Source) Send(ctx context.Context, r remotehttp.Request) (*remotehttp.Response, error) {
	answer, err := s.Client.Send(ctx, r)
	if err == nil && !answer.OK() {
		defer answer.Close()
		err, _ = answer.Refusal()
	}
	if err != nil {
		return nil, Explained(err)
	}
	return answer, nil
}

// Explained returns an error of the client with what a user can do something about:
// the daemon's message, or why there is no connection.
func Explained(err error) error {
	if refused, ok := errors.AsType[*remote.Error](err); ok {
		return refusal{refused}
	}
	if bad, ok := errors.AsType[unusable](err); ok {
		return bad.error
	}
	if lost, ok := errors.AsType[*url.Error](err); ok {
		if u, bad := url.Parse(lost.URL); bad == nil && errors.Is(err, syscall.ECONNREFUSED) {
			return noDaemon{u.Scheme + "://" + u.Host}
		}
		return lost
	}
	return err
}

// noDaemon is a server where nothing listens.
type noDaemon struct{ url string }

func (n noDaemon) Error() string {
	return fmt.Sprintf("no daemon answers at %s (connection refused): start one, such as helixd dev, or name another with --server", n.url)
}

// refusal is a daemon's answer that is no success.
type refusal struct{ cause *remote.Error }

func (r refusal) Error() string {
	if r.cause.Code == "" {
		return fmt.Sprintf("%d %s", r.cause.Status, http.StatusText(r.cause.Status))
	}
	return fmt.Sprintf("%s (%s)", terminal.Printable(r.cause.Message), terminal.Printable(r.cause.Code))
}

// maxAnswer is the largest answer that is read as a whole, in bytes.
const maxAnswer = 1 << 30

// Show prints an answer, as it is or in words, and closes it.
func Show[T any](p *flags.Process, asJSON bool, answer *remotehttp.Response, words func(T) error) error {
	defer answer.Close()
	if asJSON {
		return terminal.PrintJSON(p.Stdout, answer)
	}
	var v T
	if err := answer.Decode(&v, maxAnswer); err != nil {
		return err
	}
	return words(v)
}

// Session is a path below a session, with all dots of the id escaped: "." and ".." would mean
// other paths.
func Session(id, path string) string {
	return "/sessions/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E") + path
}

// MaxLine is the longest line of an answer or of an input, in bytes.
const MaxLine = 64 << 20

// Lines reads an input, line by line.
func Lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), MaxLine)
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
