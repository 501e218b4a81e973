package sqlite

import (
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// writeMessages writes the messages of a session behind those that are in the
// file already: a message is told by its place and its record.
func (p *projection) writeMessages(root string, t *projector.Tree, session string, w *written) error {
	s := t.Get(session)
	if s == nil {
		return nil
	}
	was, same := w.messages[session], 0
	for same < len(was) && same < len(s.Messages) && was[same] == s.Messages[same].Sequence {
		same++
	}
	if same == len(was) && same == len(s.Messages) {
		return nil
	}
	if same < len(was) {
		if err := p.deleteWords("root = ? AND session = ? AND n >= ?", root, session, same); err != nil {
			return err
		}
		if err := p.exec("DELETE FROM messages WHERE root = ? AND session = ? AND n >= ?", root, session, same); err != nil {
			return err
		}
	}
	now := was[:same:same]
	for n := same; n < len(s.Messages); n++ {
		m := &s.Messages[n]
		now = append(now, m.Sequence)
		err := p.exec("INSERT INTO messages (root, session, n, sequence) VALUES (?, ?, ?, ?)", root, session, n, int64(m.Sequence))
		if err != nil {
			return err
		}
		for _, text := range readmodel.Texts(m) {
			if err := p.writeText(root, session, n, m, text); err != nil {
				return err
			}
		}
	}
	w.messages[session] = now
	return nil
}

func (p *projection) writeText(root, session string, n int, m *projector.Message, text readmodel.Text) error {
	insert, err := p.stmt("INSERT INTO texts (root, session, n, kind, role, tool, call, sequence, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	done, err := insert.Exec(root, session, n, string(text.Kind), string(m.Role), text.ToolName, text.ToolCallID, int64(m.Sequence), m.Timestamp)
	if err != nil {
		return err
	}
	id, err := done.LastInsertId()
	if err != nil {
		return err
	}
	return p.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", id, text.Text)
}
