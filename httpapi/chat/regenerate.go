package chat

import (
	"context"
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
func (c *chat) regenerate(ctx context.Context) (portion, error) {
	if c.tree.SessionID == "" {
		return portion{}, eventlog.ErrSessionNotFound
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
		SessionID: c.body.session, Mode: fact.ModeRetry, Run: run.RunID,
	})
	return reply, err
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
		if run.Struck || run.StartSequence == 0 || run.StartSequence < from || slices.Contains(turns, run.Turn) {
			continue
		}
		if turns = append(turns, run.Turn); len(turns) == max(at.answers, 1) {
			return run
		}
	}
	return nil
}
