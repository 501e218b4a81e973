package eventlog

import "strings"

// Survives says in words what acknowledged appends survive, for logs and for
// /readyz.
func (d Durability) Survives() string {
	interval, batched := strings.CutPrefix(string(d), "interval=")
	servers, replicated := strings.CutPrefix(string(d), "replicated×")
	switch {
	case d == DurabilityFsync:
		return "acknowledged appends survive a power loss"
	case batched:
		return "acknowledged appends survive a killed process; a power loss undoes at most those of the last " + interval
	case replicated:
		return "acknowledged appends survive the loss of fewer than half of " + servers + " servers"
	case d == DurabilityMemory:
		return "acknowledged appends are lost when the server ends"
	}
	return "acknowledged appends survive a killed client; nothing more is known"
}

// Replicas says how many of the servers that keep a replicated log are there.
type Replicas struct {
	Wanted  int      `json:"wanted"`            // servers that should keep each record
	Present int      `json:"present"`           // of the partition that lacks most
	Missing []string `json:"missing,omitempty"` // servers that do not answer, by name
	// Lag is how many operations the server lacks that is furthest behind of those present.
	Lag uint64 `json:"lag,omitempty"`
	// Skew is how far the clock of a server that leads a partition differs from this machine's,
	// at least, in milliseconds: of the server that differs most.
	Skew int64 `json:"skewMs,omitempty"`
}
