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

// Options are jetstream.Options with their defaults, and what a restore and tests add.
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
	// Restores: the streams are made for a restore.
	Restores *RestoreMark
	Tuning
}

// GroupSync reports whether the log waits for the disk itself, see synced.
func (o Options) GroupSync() bool { return o.Server != nil && o.Server.GroupSync() }

// GroupCommit reports whether sharing an append's cost is worth it: where it
// waits for a disk or for other servers, and where that is not known.
func (o Options) GroupCommit() bool {
	return !o.GroupSync() && (o.Replicas > 1 || !strings.HasPrefix(string(o.Durability), "interval="))
}

// GroupMessages is how many messages share a batch at most.
func (o Options) GroupMessages() int {
	if o.GroupSync() && o.Server.MaxBatch() >= ownMessages {
		return ownMessages
	}
	return groupMessages
}

// SyncInterval is how often the server's files reach the disk, as far as
// known; 0: at every append, or not known.
func (o Options) SyncInterval() time.Duration {
	text, _ := strings.CutPrefix(string(o.Durability), "interval=")
	d, _ := time.ParseDuration(text)
	return d
}

// GatherFrom is from how many records on an atomic batch is quicker than a
// publish for each. One server stages a batch in files of its own, which costs
// more than syncing a few messages.
func (o Options) GatherFrom() int {
	switch {
	case o.Replicas > 1 || o.GroupSync(): // else each publish waits for a round, or a sync
		return 2
	case o.GroupCommit():
		return GroupFrom
	default:
		return 8 * GroupFrom
	}
}

func (o Options) answerTimeout() time.Duration {
	switch {
	case o.Restores != nil: // it has no second try
		return LeaderPatience
	case o.Replicas > 1:
		return replicatedTimeout
	}
	return AnswerTimeout
}

// MostLost is how long a time's records a power loss can take from the log and leave
// in segments.
func (o Options) MostLost() time.Duration {
	switch interval := o.SyncInterval(); {
	case o.Replicas > 1 || o.Durability == eventlog.DurabilityFsync:
		return -1 // none
	case interval > 0:
		return 2*interval + lateSync
	default:
		return 2*unknownSync + lateSync
	}
}

const (
	// unknownSync is how often a server syncs its files by default.
	unknownSync = 2 * time.Minute
	// lateSync is by how much a sync may be late on a disk that is overloaded.
	lateSync = time.Minute
)

// GroupFrom is how many sessions must wait before their appends share a
// batch. Under it a publish for each, all in flight, is quicker.
const GroupFrom = 16

// GroupMessages bounds a shared batch. Where only batches are shared and the
// server takes more, it is ownMessages: an append of 1,000 still shares one with two others,
// and appends that go by themselves wait for no more than some 40 ms of the server's time.
const groupMessages = 900

// ownMessages is GroupMessages of an embedded server.
const ownMessages = 3000

// NewPartitions is how many a new log has if nobody says: more than one server
// shares the work that leaders have.
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

// RestoreMark is what tells the streams of a restore.
type RestoreMark struct {
	ID     string   // of this restore
	First  []uint64 // sequences with which the partitions go on
	Places layout.Places
}
