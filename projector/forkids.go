package projector

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// ForkID returns the id that a session of a tree gets in a fork which is called
// id.
func ForkID(t *Tree, id, session string) string { return forkIDs(t, id)(session) }

// forkIDs returns what names the sessions of a tree in its fork. A sub-agent's
// session gets the id that it would have got there, so that it is found again.
// What [ChildID] has not named, as another server's sub-agents, keeps what it
// adds to the id of the session that it belongs to.
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
		// No circle: an id holds the parent's, or a hash of it.
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
		for _, owner := range owners { // the nearest one first
			if rest, ok := strings.CutPrefix(s, owner+"-"); ok {
				return fittingID(ids[owner] + "-" + rest)
			}
		}
		return s
	}
}
