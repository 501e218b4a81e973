package jetstream_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	testkit.AtOnce(6)
	goleak.VerifyTestMain(testkit.InMemory(m))
}

// open returns the log of a new server.
func open(t testing.TB, sync time.Duration) eventlog.Log {
	t.Helper()
	durability := eventlog.DurabilityFsync
	if sync > 0 {
		durability = eventlog.Durability("interval=" + sync.String())
	}
	return openAs(t, sync, durability)
}

// openAs opens a log with another durability than the server's.
func openAs(t testing.TB, sync time.Duration, durability eventlog.Durability) eventlog.Log {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: sync})
	return jetstreamtest.Open(t, nc, &jetstream.Options{Durability: durability})
}

// openGroupSync returns the log of a server that leaves syncing to the log.
func openGroupSync(t testing.TB) (*embed.Server, *nats.Conn, *jetstream.Log) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{GroupSync: true})
	if !srv.GroupSync() {
		t.Skip("the temporary folder's file system may lose a renamed file")
	}
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Durability: eventlog.DurabilityFsync, Server: srv})
	return srv, nc, log
}

// TestContract: each way to wait for the disk has code of its own. A plain run tries the way of
// an embedded server, the one with most at the same time.
func TestContract(t *testing.T) {
	testkit.Slow(t)
	t.Run("fsync, one for all", func(t *testing.T) {
		t.Parallel()
		logtest.Run(t, func(t *testing.T) eventlog.Log {
			_, _, log := openGroupSync(t)
			return log
		})
	})
	t.Run("fsync", func(t *testing.T) {
		testkit.Full(t)
		t.Parallel() // most of it is waiting for the disk
		logtest.Run(t, func(t *testing.T) eventlog.Log { return open(t, 0) })
	})
	t.Run("interval", func(t *testing.T) {
		if !testkit.Raced { // it has more at the same time than fsync
			testkit.Full(t)
		}
		t.Parallel()
		logtest.Run(t, func(t *testing.T) eventlog.Log {
			srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
			return jetstreamtest.Open(t, nc, &jetstream.Options{Durability: "interval=1s", Server: srv})
		})
	})
}
