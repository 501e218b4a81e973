package chat

import (
	"slices"

	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// speaks reports whether the client's last message is a user's that the session
// does not have.
func (c *chat) speaks() bool {
	return c.body.fromUser && !c.body.regenerate && !c.said() && !c.saidEarlier()
}

// saidEarlier reports whether the client's last message, a user's, is one that the session
// answered before its last one: a late repetition.
func (c *chat) saidEarlier() bool {
	users := visible(c.tree)
	return c.body.fromUser && slices.ContainsFunc(users[:max(len(users)-1, 0)], func(m *projector.Message) bool {
		return c.names(m) && m.Content == c.body.input.Content
	})
}

// said reports whether the client's last message, a user's, is the session's last one: the
// request is a repetition, since its answer was lost. It compares the client's id of the
// message, which the log stores, and the message's id in histories.
func (c *chat) said() bool {
	users := visible(c.tree)
	return len(users) > 0 && c.names(users[len(users)-1]) && c.sameAs(users[len(users)-1])
}

// changes reports whether the client's last message has the id of a message in histories,
// but another content. A message that was edited under the client's own id is a new
// message.
func (c *chat) changes() bool {
	if !c.body.fromUser || c.body.regenerate || c.said() || c.saidEarlier() {
		return false
	}
	id := c.body.lastID
	return id != "" && slices.ContainsFunc(visible(c.tree), func(m *projector.Message) bool { return id == c.shown(m) })
}

// names reports whether the client's last message has the id of one of the
// session's.
func (c *chat) names(m *projector.Message) bool {
	id := c.body.lastID
	return id != "" && (id == m.MessageID || id == c.shown(m))
}

// shown returns the id that a user message has in histories.
func (c *chat) shown(m *projector.Message) string {
	if c.ids == nil {
		c.ids = shownIDs(c.tree, c.s.options().MessageID)
	}
	return c.ids[m]
}

// shownIDs returns the ids that user messages have in histories.
func shownIDs(t *projector.Tree, id uimessage.MessageID) map[*projector.Message]string {
	users, ids := visible(t), map[*projector.Message]string{}
	for _, ui := range uimessage.Render(t, id) {
		if ui.Role == "user" && len(users) > 0 {
			ids[users[0]], users = ui.ID, users[1:]
		}
	}
	return ids
}

func (c *chat) sameAs(m *projector.Message) bool {
	return c.body.inputProblem == nil && m.Content == c.body.input.Content && slices.Equal(m.Files, c.body.input.Files)
}

// visible returns the user messages that clients see.
func visible(t *projector.Tree) []*projector.Message {
	var users []*projector.Message
	for i := range t.Messages {
		if m := &t.Messages[i]; m.Role == projector.RoleUser && !m.Hidden() {
			users = append(users, m)
		}
	}
	return users
}
