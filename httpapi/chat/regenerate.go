package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// regenerate takes the session back to the user message before the wanted answer, and has
// it answered again. Later records are truncated.
//
// A user message into an open turn, such as after an interruption, does not begin a turn:
// so regenerate names the run whose beginning to go back to, not the turn.
//
// A client whose connection broke before the answer can't know whether the request was
// carried out. If it repeats the request with its key, it gets the answer of the first one.
func (c *chat) regenerate(ctx context.Context) (portion, error) {
	if c.tree.SessionID == "" {
		return portion{}, eventlog.ErrSessionNotFound
	}
	if run := c.tree.RunNamed(c.body.name); run != nil {
		return c.regenerated(ctx, run)
	}
	at, err := c.wanted()
	if err != nil {
		return portion{}, err
	}
	if c.live() {
		return portion{}, agentloop.ErrAlreadyRunning
	}
	run := runAt(c.tree, at)
	if run == nil {
		return portion{}, web.Invalid("messageId", "names no answer that can be given again")
	}
	reply := portion{after: web.Position{Sequence: c.tree.Head}, begin: true}
	_, err = c.s.loop.TimeTravel.Rewind(ctx, timetravel.RewindRequest{
		SessionID: c.body.session, Mode: fact.ModeRetry, Run: run.RunID, Name: c.body.name,
	})
	return reply, err
}

// regenerated answers a request to regenerate that is repeated: with the answer that its run
// gives, from the beginning. If the run's process has died, the run is driven.
func (c *chat) regenerated(ctx context.Context, run *projector.Run) (portion, error) {
	if run.Turn != c.tree.TurnCount { // the answer is in the history
		return portion{}, errNothingNew
	}
	_, err := c.s.loop.TimeTravel.Rewind(ctx, timetravel.RewindRequest{
		SessionID: c.body.session, Mode: fact.ModeRetry, Run: run.RunID, Name: run.Name,
	})
	return portion{whole: true}, err
}

// runName names the run of a request to regenerate: the same key for the same answer has
// the same name. Without a key there is none.
func runName(key, messageID string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key + "\x00" + messageID)) // which keys don't contain
	return hex.EncodeToString(sum[:20])
}

// place is a place in the conversation that clients see.
type place struct {
	users   int // user messages up to there
	answers int // assistant's messages after the last one of them
}

// wanted returns the place of the answer to give again: messageId names the answer or its
// user message; without messageId it is the last answer.
func (c *chat) wanted() (place, error) {
	id := c.body.messageID
	var at place
	users := visible(c.tree)
	for _, m := range uimessage.Render(c.tree, c.s.options().MessageID) {
		at = at.then(m.Role)
		if id != "" && (id == m.ID || id == strings.TrimSuffix(m.ID, uimessage.Partial)) {
			return at, nil
		}
	}
	if id == "" {
		return at, nil
	}
	// A message that was sent from this page has an id of the client's own: it
	// is the last of the body, as the session has it at the same place.
	if last := c.body.last; c.body.fromUser && c.body.lastID == id {
		n := c.body.users
		if n <= len(users) && users[n-1].Content == textOf(last) {
			return place{users: n}, nil
		}
	}
	return place{}, ErrNoMessage
}

func (p place) then(role string) place {
	if role == "user" {
		return place{users: p.users + 1}
	}
	return place{p.users, p.answers + 1}
}

// runAt returns the run that began the answer at a place. It is nil if the run is not in
// the session, as in a fork, which copies messages only.
func runAt(t *projector.Tree, at place) *projector.Run {
	var from uint64
	if at.users > 0 {
		from = visible(t)[at.users-1].Sequence
	}
	var turns []int
	for i := range t.Runs {
		run := &t.Runs[i]
		if run.Truncated || run.StartSequence == 0 || run.StartSequence < from || slices.Contains(turns, run.Turn) {
			continue
		}
		if turns = append(turns, run.Turn); len(turns) == max(at.answers, 1) {
			return run
		}
	}
	return nil
}
