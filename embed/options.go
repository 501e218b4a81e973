package embed

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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
)

// Options configure a server. The zero value but for DataDir is durable and
// closed to the outside.
type Options struct {
	// DataDir is the folder of the JetStream data. Required. One server at a
	// time may use it.
	DataDir string
	// SyncInterval is how often data reaches the disk; 0 syncs every append
	// before it is acknowledged.
	SyncInterval time.Duration
	// Listen is the address for NATS clients from outside, "host:port";
	// port 0 picks a free one. Empty: none. Without User, clients that give
	// no credentials may subscribe to helix.live.> and nothing else: whoever
	// reaches the address hears all sessions.
	Listen string
	// AllowRead lets clients without credentials also read the logs of all
	// sessions, through the part of JetStream's API that only reads. With
	// User it changes nothing.
	AllowRead bool
	// User and Password, both or neither, are credentials with which a
	// client from outside may do everything. With them, clients that give no
	// credentials are refused.
	User, Password string
	// MaxStore limits the disk space, in bytes; 0 means DefaultMaxStore.
	MaxStore int64
	// Name is the server's name; empty: "helixd".
	Name string
	// Logger takes the server's warnings and errors; nil: none.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.DataDir == "" {
		return o, errors.New("embed: DataDir is required")
	}
	dir, err := filepath.Abs(o.DataDir)
	if err != nil {
		return o, fmt.Errorf("embed: data dir: %w", err)
	}
	o.DataDir = dir
	if o.MaxStore == 0 {
		o.MaxStore = DefaultMaxStore
	}
	if o.Name == "" {
		o.Name = "helixd"
	}
	return o, nil
}

// serverOptions translates o and returns the password of Connect.
func (o Options) serverOptions() (opts *server.Options, password string, err error) {
	opts = &server.Options{
		ServerName:             o.Name,
		JetStream:              true,
		StoreDir:               o.DataDir,
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
	if password, err = authorize(opts, o); err != nil {
		return nil, "", err
	}
	if o.Listen == "" {
		return opts, password, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, "", fmt.Errorf("embed: listen address: %w", err)
	}
	if opts.Port, err = strconv.Atoi(port); err != nil || opts.Port < 0 || opts.Port > 65535 {
		return nil, "", fmt.Errorf("embed: listen address %q: bad port", o.Listen)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	opts.Host, opts.DontListen = host, false
	return opts, password, nil
}
