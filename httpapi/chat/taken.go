package chat

import (
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// takenUp returns the record after which the session continued with the answers that the
// client's assistant message repeats. It is false if the session has not continued, or has
// another message since.
func (c *chat) takenUp() (after uint64, ok bool) {
	if c.body.fromUser {
		return 0, false
	}
	var result uint64
	for _, s := range c.tree.Sessions() {
		for _, m := range s.Messages {
			if m.AnsweredAs != fact.PendingClient && m.AnsweredAs != fact.PendingApproval {
				continue
			}
			if c.repeats(m.ToolCallID) && (result == 0 || m.Sequence < result) {
				result = m.Sequence
			}
		}
	}
	// A run that was live took the answer up: the client has what came before
	// the question.
	after = c.askedAt()
	for _, run := range c.tree.Runs {
		if !run.Truncated && run.Turn == c.tree.TurnCount && run.StartSequence < result {
			after, ok = max(after, run.StartSequence), true
		}
	}
	users := visible(c.tree)
	return after, ok && (len(users) == 0 || users[len(users)-1].Sequence <= after)
}

// shownUpTo returns the last record that the client's message shows: where the stream
// stopped, or a later question that the message has.
func (c *chat) shownUpTo() uint64 {
	if c.tree.Stopped == nil || c.tree.Stopped.At == 0 {
		return c.tree.Head
	}
	return max(c.tree.Stopped.At, c.asked(func(call string) bool { return c.body.shown[call] }))
}

// askedAt returns the record of the last question that the client answers.
func (c *chat) askedAt() uint64 { return c.asked(c.repeats) }

// asked returns the record of the last question about one of some calls.
func (c *chat) asked(about func(call string) bool) (at uint64) {
	for _, a := range c.tree.Asides {
		if a.CallID != "" && about(a.CallID) {
			at = max(at, a.Sequence)
		}
	}
	for _, m := range c.tree.Messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil && about(p.ToolCall.ID) {
				at = max(at, m.Sequence)
			}
		}
	}
	return at
}

func (c *chat) repeats(call string) bool { return c.body.answered[call] }

// stepsOf counts the steps of a session's last message.
func stepsOf(t *projector.Tree) int {
	messages := uimessage.Render(t, nil)
	if len(messages) == 0 {
		return 0
	}
	n := 0
	for _, p := range messages[len(messages)-1].Parts {
		if _, ok := p.(uimessage.StepStart); ok {
			n++
		}
	}
	return n
}
