package jetstream

import (
	"context"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/metrics"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

// What other adapters need on the same deployment.

// Settle calls f again for as long as a cluster can't do what f asks only
// because it has just come up, or has just lost a server: streams without a
// leader, servers that have not heard of each other. f may be called again
// when it was obeyed and its answer lost. It ends with f's last error when ctx
// does, or after a minute if ctx has no deadline. A server that is alone is
// asked once.
func Settle(ctx context.Context, nc *nats.Conn, f func(context.Context) error) error {
	return link.Settle(ctx, nc, f)
}

// CreateOrFind makes a stream, or finds the one with other settings that another node
// has made. While a cluster is making that one, Settle calls again.
func CreateOrFind(ctx context.Context, js natsjs.JetStream, want natsjs.StreamConfig) (natsjs.Stream, error) {
	return streams.CreateOrFind(ctx, js, want)
}

// CompressionOf is how streams with so many replicas may be compressed. A server
// of a cluster that is started again may compress the block to which it then
// appends (2.15.2, with SyncAlways): the replica is unreadable from then on.
func CompressionOf(replicas int) natsjs.StoreCompression { return streams.CompressionOf(replicas) }

// IsConflict reports whether the server refused to publish since the subject's last
// message is another one than was expected, or may soon be.
func IsConflict(err error) bool { return link.IsConflict(err) }

// Server is a NATS server in this process, as embed.Server is: what its streams
// remove the log can have it overwrite in its own files.
type Server = link.Server

// Metrics measure logs. A nil one measures nothing.
type Metrics = metrics.Metrics

// NewMetrics registers what a log measures. It panics if that is registered
// already.
func NewMetrics(reg prometheus.Registerer) *Metrics { return metrics.New(reg) }
