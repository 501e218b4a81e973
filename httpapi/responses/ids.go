package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// Ids hold what they name, so that any node can resolve them: a response's is
// resp_{session}_{run}, a conversation's conv_{session}.
const (
	responsePrefix     = "resp_"
	conversationPrefix = "conv_"
	runPrefix          = "run-" // of all runs that helixd begins
)

func responseID(session, run string) string {
	return responsePrefix + session + "_" + strings.TrimPrefix(run, runPrefix)
}

// parseResponseID returns the session and the run that the id of a response names.
func parseResponseID(id string) (session, run string, ok bool) {
	rest, ok := strings.CutPrefix(id, responsePrefix)
	i := strings.LastIndexByte(rest, '_')
	if !ok || i <= 0 || i == len(rest)-1 {
		return "", "", false
	}
	session, run = rest[:i], runPrefix+rest[i+1:]
	return session, run, eventlog.ValidateClientSessionID(session) == nil && eventlog.ValidateID(run) == nil
}

func conversationID(session string) string { return conversationPrefix + session }

func parseConversationID(id string) (session string, ok bool) {
	session, ok = strings.CutPrefix(id, conversationPrefix)
	return session, ok && eventlog.ValidateClientSessionID(session) == nil
}

// outputID is the id of an output item: prefix_{run}_{index}.
func outputID(prefix, run string, index int) string {
	return fmt.Sprintf("%s_%s_%d", prefix, strings.TrimPrefix(run, runPrefix), index)
}

// inputID is the id of an item that a record of the session holds. A record of an assistant's
// message may hold several.
func inputID(prefix, session string, sequence uint64, part int) string {
	sum := sha256.Sum256([]byte(session))
	return fmt.Sprintf("%s_%s_%d_%d", prefix, hex.EncodeToString(sum[:8]), sequence, part)
}

// approvalItemID is the id of the item that asks for a call's approval. The client's answer
// names it.
func approvalItemID(approvalID string) string {
	run, call, _ := strings.Cut(approvalID, "::")
	return "mcpr_" + strings.TrimPrefix(run, runPrefix) + "_" + call
}
