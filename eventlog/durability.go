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
