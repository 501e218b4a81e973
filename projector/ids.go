package projector

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// What is in the id of a sub-agent's session between its parent's id and the call that
// made it or, of a persistent sub-agent, its name.
const (
	InfixCall   = "-sub-"
	InfixAgent  = "-agent-"
	InfixRemote = "-remote-"
)

// ChildID returns the id of a sub-agent's session, always the same for the same
// arguments. Ids longer than eventlog.MaxSessionID keep a prefix and end in a hash.
func ChildID(parent, infix, name string) string { return fittingID(parent + infix + name) }

func fittingID(id string) string {
	if len(id) <= eventlog.MaxSessionID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	hash := hex.EncodeToString(sum[:16])
	prefix := strings.ToValidUTF8(id[:eventlog.MaxSessionID-1-len(hash)], "") // without a character that was split
	return prefix + "-" + hash
}

// childID is the id that the session has under another parent.
func childID(parent string, c *fact.SubSession) string {
	switch {
	case c.Remote:
		return ChildID(parent, InfixRemote, c.CallID)
	case c.Mode == fact.SubSessionPersistent:
		return ChildID(parent, InfixAgent, c.Name)
	}
	return ChildID(parent, InfixCall, c.CallID)
}

// ForkID returns the id that a session of a tree gets in the fork with the given id.
func ForkID(t *Tree, id, session string) string { return forkIDs(t, id)(session) }

// forkIDs returns a function that maps the sessions of a tree to their ids in a fork. A
// sub-agent's session gets the id that it would have got there, so that the fork finds
// it. An id that [ChildID] did not make, such as one of another server's sub-agents,
// keeps the part after the id of the session that it belongs to.
func forkIDs(t *Tree, id string) func(string) string {
	ids := map[string]string{t.SessionID: id}
	var named func(s *Session) bool
	named = func(s *Session) bool {
		if ids[s.SessionID] != "" {
			return true
		}
		if s.Child == nil {
			return false
		}
		// There is no circle: an id contains the parent's id, or a hash of it.
		parent := t.Get(s.Child.ParentSessionID)
		if parent == nil || childID(parent.SessionID, s.Child) != s.SessionID || !named(parent) {
			return false
		}
		ids[s.SessionID] = childID(ids[parent.SessionID], s.Child)
		return true
	}
	for _, s := range t.Sessions() {
		named(s)
	}
	owners := slices.SortedFunc(maps.Keys(ids), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return func(s string) string {
		if to := ids[s]; to != "" {
			return to
		}
		for _, owner := range owners { // nearest first
			if rest, ok := strings.CutPrefix(s, owner+"-"); ok {
				return fittingID(ids[owner] + "-" + rest)
			}
		}
		return s
	}
}
