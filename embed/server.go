package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Limits of an embedded server.
const (
	// MaxPayload is the largest NATS message, in bytes.
	MaxPayload = 8 << 20
	// DefaultMaxStore is the disk space that JetStream may use, in bytes.
	// It is fixed: a share of the free disk would change with the disk, and
	// a shrunken one blocks the next start.
	DefaultMaxStore = 1 << 40
	// maxMemory bounds memory streams, in bytes; helixd has none of size.
	maxMemory = 64 << 20
	// maxPending is what a slow NATS client may leave unread, in bytes.
	maxPending = 64 << 20
	// streamMaxBuffered is what may wait to be stored, in bytes.
	streamMaxBuffered = 128 << 20

	startTimeout = 30 * time.Second
)

// Options configure a server. The zero value but for DataDir is durable and
// closed to the outside.
type Options struct {
	// DataDir is the folder of the JetStream data. Required.
	DataDir string
	// SyncInterval is how often data reaches the disk; 0 syncs every append
	// before it is acknowledged.
	SyncInterval time.Duration
	// Listen is the address for NATS clients from outside, "host:port";
	// port 0 picks a free one. Empty: none.
	Listen string
	// MaxStore limits the disk space, in bytes; 0 means DefaultMaxStore.
	MaxStore int64
	// Name is the server's name; empty: "helixd".
	Name string
	// Logger takes the server's warnings and errors; nil: none.
	Logger *slog.Logger
}

// Server is a running nats-server.
type Server struct {
	srv  *server.Server
	opts Options
	stop sync.Once
}

// Start runs a server and returns when it takes connections. ctx bounds the
// start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.DataDir == "" {
		return nil, errors.New("embed: DataDir is required")
	}
	if o.MaxStore == 0 {
		o.MaxStore = DefaultMaxStore
	}
	if o.Name == "" {
		o.Name = "helixd"
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	opts := &server.Options{
		ServerName:             o.Name,
		JetStream:              true,
		StoreDir:               dir,
		JetStreamMaxStore:      o.MaxStore,
		JetStreamMaxMemory:     maxMemory,
		StreamMaxBufferedSize:  streamMaxBuffered,
		SyncAlways:             o.SyncInterval == 0,
		SyncInterval:           o.SyncInterval,
		MaxPayload:             MaxPayload,
		MaxPending:             maxPending,
		NoSigs:                 true, // else SIGINT would exit the process
		DontListen:             true,
		NoSystemAccount:        true,
		DisableJetStreamBanner: true,
	}
	if o.Listen != "" {
		host, port, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return nil, fmt.Errorf("embed: listen address: %w", err)
		}
		opts.DontListen = false
		opts.Host = host
		if opts.Port, err = strconv.Atoi(port); err != nil {
			return nil, fmt.Errorf("embed: listen port: %w", err)
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	log := &logger{log: o.Logger}
	srv.SetLogger(log, false, false)
	s := &Server{srv: srv, opts: o}
	srv.Start()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		if why := log.lastError(); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return nil, err
	}
	return s, nil
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if s.srv.ReadyForConnections(10*time.Millisecond) && s.srv.JetStreamEnabled() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("embed: server did not start: %w", err)
		}
		if !s.srv.Running() {
			return errors.New("embed: server did not start")
		}
	}
}

// Connect returns a connection through a pipe inside the process, which the
// caller closes.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect("", append([]nats.Option{nats.InProcessServer(s.srv)}, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embed: connect: %w", err)
	}
	return nc, nil
}

// ClientURL is the address for NATS clients from outside, empty without
// Options.Listen.
func (s *Server) ClientURL() string {
	if s.opts.Listen == "" {
		return ""
	}
	return s.srv.ClientURL()
}

// SyncInterval is how often data reaches the disk; 0 means at every append.
func (s *Server) SyncInterval() time.Duration { return s.opts.SyncInterval }

// Stop ends the server and waits until its data is on the disk. It is
// idempotent.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
	})
}
