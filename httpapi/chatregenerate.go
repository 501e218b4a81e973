package httpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// regenerate takes the session back to behind the user message that the wanted
// answer answers, and has it answered anew. What came later is truncated.
//
// A user message that went into an open turn, after an interruption say, is no
// turn's beginning: there it is a rollback, and then a resumption.
func (c *chat) regenerate(ctx context.Context) (chatReply, error) {
	if c.tree.SessionID == "" {
		return chatReply{}, eventlog.ErrSessionNotFound
	}
	at, err := c.wanted()
	if err != nil {
		return chatReply{}, err
	}
	if c.live() {
		return chatReply{}, agentloop.ErrAlreadyRunning
	}
	run := runAt(c.tree, at)
	if run == nil {
		return chatReply{}, invalid("messageId", "names no answer that can be given again")
	}
	reply := chatReply{after: position{sequence: c.tree.Head}, begin: true}
	if begins(c.tree, run) {
		_, err = c.s.loop.Resume(ctx, engine.ResumeRequest{
			SessionID: c.body.session, Mode: eventlog.ModeRetry, Turn: run.Turn,
		})
		return reply, err
	}
	if _, err = c.s.loop.Rollback(ctx, c.body.session, engine.Target{Sequence: run.StartSequence}); err != nil {
		return chatReply{}, err
	}
	return reply, c.goOn(ctx)
}

// place is a place in the conversation that clients see.
type place struct {
	users   int // user messages up to there
	answers int // assistant's messages behind the last one of them
}

// wanted returns the message whose answer is wanted: messageId names the answer
// or the user message; without it, it is the last one.
func (c *chat) wanted() (place, error) {
	id := c.body.messageID
	var at place
	users := visible(c.tree)
	for _, m := range uimessage.Render(c.tree, c.s.chat().MessageID) {
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
	if last := c.body.last; c.body.fromUser && last.loose("id") == id {
		n := c.body.users
		if n <= len(users) && users[n-1].Content == last.looseText() {
			return place{users: n}, nil
		}
	}
	return place{}, errNoMessage
}

func (p place) then(role string) place {
	if role == "user" {
		return place{users: p.users + 1}
	}
	return place{p.users, p.answers + 1}
}

// runAt returns the run that began the answer at a place, nil if it is gone,
// as in a fork that has only its past's messages.
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

// begins reports whether a run is the first of its turn.
func begins(t *projector.Tree, run *projector.Run) bool {
	for i := range t.Runs {
		if r := &t.Runs[i]; !r.Struck && r.Turn == run.Turn {
			return r == run
		}
	}
	return false
}
