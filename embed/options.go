package embed

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/helixd/helixd/embed/internal/datadir"
	"github.com/nats-io/nats-server/v2/server"
)

// Limits of an embedded server.
const (
	// MaxPayload is the largest NATS message, in bytes.
	MaxPayload = 8 << 20
	// maxStore is the disk space that JetStream may use, in bytes.
	// It is fixed: a share of the free disk would change with the disk, and
	// a shrunken one blocks the next start.
	maxStore = 1 << 40
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
	// GroupSync leaves it to the callers to wait until what they have stored is on
	// the disk, with [Server.Sync]: many then share one sync. An answer of the server
	// alone promises nothing. It is for a server whose streams only this process writes:
	// with Cluster or User, and on a file system that may lose a renamed file (all but ext4,
	// btrfs, ZFS and tmpfs), the server syncs by itself. See [Server.GroupSync]. With
	// SyncInterval it does, too, and Sync has nothing to wait for. With AllowRead, clients
	// from outside may read what is not on the disk yet.
	GroupSync bool
	// Listen is the address for NATS clients from outside, "host:port";
	// port 0 picks a free one. Empty: none. Without User, clients without
	// credentials may subscribe to helix.live.> and nothing else: any client that can
	// reach the address receives the live records of all sessions.
	Listen string
	// AllowRead lets clients without credentials also read the logs of all
	// sessions, through the part of JetStream's API that only reads. With
	// User it changes nothing.
	AllowRead bool
	// User and Password, both or neither, are credentials with which a
	// client from outside may do everything. With them, clients that give no
	// credentials are refused.
	User, Password string
	// Subscribers are the public keys (A…) that sign rights to receive the live records of
	// a single session, as eventlog/jetstream/subscriber makes them. Clients
	// from outside that have such a right are let in with or without User.
	Subscribers []string
	// Revoked reports whether a right, given by its subject and the name in its
	// JWT, is revoked. It is called once or more for each client that shows a
	// right, and by [Server.DropRevoked]. Its first call for a client may wait; a
	// call after it returned false must not. nil: no right can be revoked.
	Revoked func(subject, name string) bool
	// MaxConnections bounds the connections from outside and those of
	// [Server.Connect] together; 0 means DefaultMaxConnections. If there are so
	// many, Connect ends connections from outside.
	MaxConnections int
	// Cluster makes the server one of several; nil: it is alone.
	Cluster *Cluster
	// WebSocket also takes NATS clients over WebSocket; nil: none.
	WebSocket *WebSocket
	// Name is the server's name, without spaces; in a cluster no other has it,
	// and it stays with the data folder. Empty: "helixd", in a cluster the
	// host's name and Cluster.Listen.
	Name string
	// MinFree is how many bytes should be free on the disk of DataDir. With
	// less the server should store nothing more, see [Server.Refuses]; it is
	// restarted when there is room again after a full disk. 0: the disk is not watched.
	MinFree int64
	// KeepFormat leaves the folder's format number, see [version.Format], as it is, for a
	// caller that only reads; it also takes a folder whose data another deployment has, see
	// [SetMoved]. A folder of a later format is refused in any case.
	KeepFormat bool
	// Logger takes the server's warnings and errors; nil: none.
	Logger *slog.Logger

	password  string        // of userInside
	maxUnread int           // bytes; 0: the default
	removeAsk time.Duration // 0: the default
}

// How many messages a server takes in one atomic batch. Each batch costs a single
// server some milliseconds, so it takes large ones; the limit of clusters is nats-server's own.
const (
	maxBatch        = 4096
	clusterMaxBatch = 1000
)

// groupSync reports whether callers have to wait for the disk themselves, if the options
// require that anyone does.
func (o Options) groupSync() bool { return o.GroupSync && o.Cluster == nil && o.ungrouped() == "" }

// ungrouped is why one server that syncs each message can't leave that to its callers;
// empty: it can.
func (o Options) ungrouped() string {
	switch {
	case o.User != "":
		return "NATS clients from outside may write"
	case o.SyncInterval == 0 && !datadir.OrdersRenames(o.DataDir):
		return "the file system of the data folder is not known to write a file when it replaces another one"
	}
	return ""
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
	o.password = rand.Text()
	o.MaxConnections = cmp.Or(o.MaxConnections, DefaultMaxConnections)
	o.maxUnread = cmp.Or(o.maxUnread, maxUnread)
	o.removeAsk = cmp.Or(o.removeAsk, removeAsk)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Cluster != nil {
		c := *o.Cluster
		c.Name = cmp.Or(c.Name, DefaultCluster)
		o.Cluster = &c
	}
	return o, nil
}

// serverOptions translates o.
func (o Options) serverOptions() (opts *server.Options, err error) {
	opts = &server.Options{
		ServerName:             o.Name,
		JetStream:              true,
		StoreDir:               o.DataDir,
		JetStreamMaxStore:      maxStore,
		JetStreamMaxMemory:     maxMemory,
		StreamMaxBufferedSize:  streamMaxBuffered,
		SyncAlways:             o.SyncInterval == 0 && !o.groupSync(),
		SyncInterval:           o.SyncInterval,
		MaxPayload:             MaxPayload,
		MaxPending:             maxPending,
		MaxConn:                o.MaxConnections,
		NoSigs:                 true, // else SIGINT would exit the process
		DontListen:             true,
		NoSystemAccount:        true,
		DisableJetStreamBanner: true,
	}
	if o.Cluster == nil {
		opts.JetStreamLimits.MaxBatchSize = maxBatch
	}
	if err := authorize(opts, o); err != nil {
		return nil, err
	}
	if o.Listen != "" {
		if opts.Host, opts.Port, err = splitAddress("listen address", o.Listen); err != nil {
			return nil, err
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
		opts.DontListen = false
	}
	if o.WebSocket != nil {
		if err := o.WebSocket.apply(opts); err != nil {
			return nil, err
		}
	}
	if o.Cluster == nil {
		return opts, nil
	}
	if err := o.Cluster.apply(opts); err != nil {
		return nil, err
	}
	if o.Listen == "" {
		o.hideClientPort(opts)
	}
	return opts, nil
}
