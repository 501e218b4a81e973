package streams

import (
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// DurabilityOf returns what an acknowledged append survives: the weakest durability that
// the streams' settings imply, together with what the operator of an embedded server
// knows.
//
// Only the system account can ask whether a server syncs its files, and it has no
// JetStream: a log's connection can never ask. So one replica on an outside deployment is
// unknown.
func DurabilityOf(known eventlog.Durability, streams []*natsjs.StreamInfo) eventlog.Durability {
	replicas := 0
	for _, s := range streams {
		if s.Config.Storage == natsjs.MemoryStorage {
			return eventlog.DurabilityMemory
		}
		n := min(s.Config.Replicas, max(len(ServersOf(s)), 1))
		if replicas == 0 || n < replicas {
			replicas = n
		}
	}
	switch {
	case known != "":
		return known
	case replicas > 1:
		return eventlog.Durability(fmt.Sprintf("replicated×%d", replicas))
	}
	return eventlog.DurabilityUnknown
}

// Durability returns what an acknowledged append survives, as of Open or of the last call
// of Replicas that succeeded.
func (l *Set) Durability() eventlog.Durability { return *l.durability.Load() }

func (l *Set) setDurability(found []*natsjs.StreamInfo) {
	d := DurabilityOf(l.Opts.Durability, found)
	l.durability.Store(&d)
}
