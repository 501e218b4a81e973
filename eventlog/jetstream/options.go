package jetstream

import (
	"strings"
	"time"
)

// options are those of a log with its defaults, and what a restore adds.
type options struct {
	Options
	// restores: the streams are made for a restore.
	restores *restoreMark
}

// groupSync reports whether the log waits for the disk itself, see durable.go.
func (o options) groupSync() bool { return o.Server != nil && o.Server.GroupSync() }

// groupCommit reports whether sharing an append's cost is worth it: where it
// waits for a disk or for other servers, and where that is not known.
func (o options) groupCommit() bool {
	return !o.groupSync() && (o.Replicas > 1 || !strings.HasPrefix(string(o.Durability), "interval="))
}

// groupMessages is how many messages share a batch at most.
func (o options) groupMessages() int {
	if o.groupSync() && o.Server.MaxBatch() >= ownMessages {
		return ownMessages
	}
	return groupMessages
}

// syncInterval is how often the server's files reach the disk, as far as
// known; 0: at every append, or not known.
func (o options) syncInterval() time.Duration {
	text, _ := strings.CutPrefix(string(o.Durability), "interval=")
	d, _ := time.ParseDuration(text)
	return d
}

// gatherFrom is from how many records on an atomic batch is quicker than a
// publish for each. One server stages a batch in files of its own, which costs
// more than syncing a few messages.
func (o options) gatherFrom() int {
	switch {
	case o.Replicas > 1 || o.groupSync(): // else each publish waits for a round, or a sync
		return 2
	case o.groupCommit():
		return groupFrom
	default:
		return 8 * groupFrom
	}
}
