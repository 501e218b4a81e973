package jetstream

import (
	"context"
	"errors"
	"iter"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/metrics"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

// Functions for other adapters on the same deployment.

// Settle calls f again while a cluster can't do what f requests only because it has just
// started, or has just lost a server: streams without a leader, servers that don't know
// of each other yet. f may be called again after the request was carried out and its
// answer lost. Settle returns f's last error when ctx ends, or after a minute if ctx has
// no deadline. On a server without a cluster it calls f once.
func Settle(ctx context.Context, nc *nats.Conn, f func(context.Context) error) error {
	return link.Settle(ctx, nc, f)
}

// NewJetStream returns JetStream's API. On a server without a cluster, which is asked only
// once, its requests have the log's patience: the server's disk may stall.
func NewJetStream(nc *nats.Conn) (natsjs.JetStream, error) { return link.NewJetStream(nc) }

// FindOrCreate finds a stream, which may have other settings, or creates it. While a cluster
// can't, or is creating it for another node, it tries again as [Settle] does.
func FindOrCreate(ctx context.Context, nc *nats.Conn, js natsjs.JetStream, want natsjs.StreamConfig) (s natsjs.Stream, err error) {
	err = Settle(ctx, nc, func(ctx context.Context) (err error) {
		if s, err = js.Stream(ctx, want.Name); errors.Is(err, natsjs.ErrStreamNotFound) {
			s, err = streams.CreateOrFind(ctx, js, want)
		}
		return err
	})
	return s, err
}

// CompressionOf returns the compression of streams with that many replicas. If a server
// of a cluster restarts, it may compress the block to which it then appends (2.15.2, with
// SyncAlways), and the replica is unreadable from then on.
func CompressionOf(replicas int) natsjs.StoreCompression { return streams.CompressionOf(replicas) }

// Messages yields the messages of a stream that a filter matches, as its leader has them;
// none if there is no such stream.
func Messages(ctx context.Context, nc *nats.Conn, stream, filter string) iter.Seq2[*natsjs.RawStreamMsg, error] {
	return link.Messages(ctx, nc, stream, filter)
}

// Subjects returns the subjects of a stream that a filter matches, with the number of
// messages of each, also if there are more than a server lists in one answer. A subject
// that has messages all the time is among them, whatever is stored and removed meanwhile.
// Each request has the patience of [Settle].
func Subjects(ctx context.Context, nc *nats.Conn, stream, filter string) (map[string]uint64, error) {
	return link.Subjects(ctx, nc, stream, filter)
}

// IsConflict reports whether the server refused to publish because the subject's last
// message is another one than was expected, or may soon be.
func IsConflict(err error) bool { return link.IsConflict(err) }

// GrowAdvice is the advice for a log to which NATS clients can write that should grow.
const GrowAdvice = streams.GrowAdvice

// Server is a NATS server in this process, such as embed.Server. The log can have it
// overwrite, in its own files, messages that were removed from its streams.
type Server = link.Server

// Metrics measure logs.
type Metrics = metrics.Metrics

// NewMetrics registers the metrics of logs. It panics if they are registered already.
func NewMetrics(reg prometheus.Registerer) *Metrics { return metrics.New(reg) }
