package streams

import (
	"fmt"

	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

// DurabilityOf tells what an acknowledged append survives, by what the
// streams say of themselves, the weakest one counting, and by what the
// operator of an embedded server knows.
//
// Whether a server syncs its files is told to the system account only, which
// has no JetStream: a log's connection can never ask. So one replica on an
// outside deployment is unknown.
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
