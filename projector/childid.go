package projector

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// What stands in the id of a sub-agent's session between its parent's id and
// the call that made it or, of a persistent one, its name.
const (
	InfixCall   = "-sub-"
	InfixAgent  = "-agent-"
	InfixRemote = "-remote-"
)

// ChildID names a sub-agent's session: the same however often it is asked for.
// Ids that get longer than eventlog.MaxSessionID keep a prefix and end in a
// hash.
func ChildID(parent, infix, name string) string { return fittingID(parent + infix + name) }

func fittingID(id string) string {
	if len(id) <= eventlog.MaxSessionID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:16])
	prefix := strings.ToValidUTF8(id[:eventlog.MaxSessionID-1-len(hash)], "") // but for a character that is cut
	return prefix + "-" + hash
}

// childID is the id that the session has under another parent.
func childID(parent string, c *eventlog.SubSession) string {
	switch {
	case c.Remote:
		return ChildID(parent, InfixRemote, c.CallID)
	case c.Mode == eventlog.SubSessionPersistent:
		return ChildID(parent, InfixAgent, c.Name)
	}
	return ChildID(parent, InfixCall, c.CallID)
}
