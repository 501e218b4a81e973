package link

import (
	"context"
	"strings"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/metrics"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// Options are jetstream.Options with defaults applied, and the values that a restore and
// tests add.
type Options struct {
	Partitions int
	Grow       bool
	Replicas   int
	Durability eventlog.Durability
	Memory     bool
	Server     Server
	Beside     func(session string, partition int) (stream, subject string)
	Forget     func(ctx context.Context, session string) error
	Refuses    func(frees bool) string
	Existing   bool
	ReadOnly   bool
	Metrics    *metrics.Metrics
	// Restores: the streams are created for a restore.
	Restores *RestoreMark
	Tuning
}

// GroupSync reports whether the log itself waits for the disk, see synced.
func (o Options) GroupSync() bool { return o.Server != nil && o.Server.GroupSync() }

// GroupCommit reports whether sharing an append's cost is worth it: if it waits for a
// disk or for other servers, or if that is unknown.
func (o Options) GroupCommit() bool {
	return !o.GroupSync() && (o.Replicas > 1 || !strings.HasPrefix(string(o.Durability), "interval="))
}

// GroupMessages is how many messages a shared batch has at most.
func (o Options) GroupMessages() int {
	if o.GroupSync() && o.Server.MaxBatch() >= ownMessages {
		return ownMessages
	}
	return groupMessages
}

// SyncInterval is how often the server syncs its files, as far as known; 0: at every
// append, or unknown.
func (o Options) SyncInterval() time.Duration {
	text, _ := strings.CutPrefix(string(o.Durability), "interval=")
	d, _ := time.ParseDuration(text)
	return d
}

// GatherFrom is the number of records from which on an atomic batch is quicker than a
// publish for each. A single server stages a batch in separate files, which costs more
// than syncing a few messages.
func (o Options) GatherFrom() int {
	switch {
	case o.Replicas > 1 || o.GroupSync(): // otherwise each publish waits for a round, or a sync
		return 2
	case o.GroupCommit():
		return GroupFrom
	default:
		return 8 * GroupFrom
	}
}

func (o Options) answerTimeout() time.Duration {
	switch {
	case o.Restores != nil: // a restore is not retried
		return LeaderPatience
	case o.Replicas > 1:
		return replicatedTimeout
	}
	return AnswerTimeout
}

// MostLost is the longest time whose records a power loss can take from the log but leave
// in segments; negative: none.
func (o Options) MostLost() time.Duration {
	switch interval := o.SyncInterval(); {
	case o.Replicas > 1 || o.Durability == eventlog.DurabilityFsync:
		return -1 // none are lost
	case interval > 0:
		return 2*interval + lateSync
	default:
		return 2*unknownSync + lateSync
	}
}

const (
	// unknownSync is how often a server syncs its files by default.
	unknownSync = 2 * time.Minute
	// lateSync is how late a sync may be on an overloaded disk.
	lateSync = time.Minute
)

// GroupFrom is how many sessions must wait until their appends share a batch. With fewer,
// a publish for each, all in flight, is quicker.
const GroupFrom = 16

// groupMessages bounds a shared batch. If only batches are shared and the server takes
// more, ownMessages does: then an append of 1,000 can share one with two others, and
// single appends wait for no more than about 40 ms of the server's time.
const groupMessages = 900

// ownMessages is groupMessages for an embedded server.
const ownMessages = 3000

// NewPartitions is how many partitions a new log has by default: more than one server
// shares the work of leaders.
func (o Options) NewPartitions() int {
	if o.Replicas > 1 {
		return 16
	}
	return 1
}

func (o Options) Storage() natsjs.StorageType {
	if o.Memory {
		return natsjs.MemoryStorage
	}
	return natsjs.FileStorage
}

// RestoreMark identifies the streams of a restore.
type RestoreMark struct {
	ID     string   // the restore's id
	First  []uint64 // first sequences of the partitions
	Places layout.Places
}
