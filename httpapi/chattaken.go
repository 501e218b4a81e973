package httpapi

import (
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// takenUp returns the record behind which the session went on with the answers
// that the client's assistant message repeats. It is false if the session has
// not, or has gone on to another message since.
func (c *chat) takenUp() (after uint64, ok bool) {
	if c.body.fromUser {
		return 0, false
	}
	var result uint64
	for _, s := range c.tree.Sessions() {
		for _, m := range s.Messages {
			if m.AnsweredAs != eventlog.PendingClient && m.AnsweredAs != eventlog.PendingApproval {
				continue
			}
			if c.repeats(m.ToolCallID) && (result == 0 || m.Sequence < result) {
				result = m.Sequence
			}
		}
	}
	for _, run := range c.tree.Runs {
		if !run.Struck && run.Turn == c.tree.TurnCount && run.StartSequence < result {
			after, ok = run.StartSequence, true
		}
	}
	users := visible(c.tree)
	return after, ok && (len(users) == 0 || users[len(users)-1].Sequence <= after)
}

func (c *chat) repeats(call string) bool {
	return slices.ContainsFunc(c.body.answers, func(a chatAnswer) bool { return a.submission.ToolCallID == call })
}

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
