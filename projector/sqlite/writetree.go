package sqlite

import (
	"database/sql"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// writeTree updates a tree's rows to its fold.
func (p *projection) writeTree(h *held) {
	if h.written == nil {
		p.recall(h)
	}
	rows, w := readmodel.Derive(h.root, h.tree), h.written
	// An upsert, since the triggers that sum would not see a replaced row.
	const upsert = `INSERT INTO trees (root, head, tenant, bytes, running) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (root) DO UPDATE SET head = excluded.head, bytes = excluded.bytes, running = excluded.running`
	p.put(upsert, h.root, int64(h.tree.Head), h.tree.Tenant, h.tree.Bytes, h.tree.Running())
	p.writeSessions(h.root, rows.Sessions, w)
	p.writeRuns(rows.Runs, w)
	p.writeUsage(h.root, rows.Usage, w)
	for _, k := range rows.Parked[min(w.parked, len(rows.Parked)):] {
		p.put("INSERT OR REPLACE INTO parked (root, sequence, stuck, type, reason) VALUES (?, ?, 0, ?, ?)",
			h.root, int64(k.Sequence), k.Type, k.Reason)
	}
	w.parked = len(rows.Parked)
	for _, s := range rows.Sessions {
		p.writeMessages(h.root, h.tree, s.SessionID, w)
	}
}

// recall loads what the file has of a fold for which that is unknown: all rows but the
// messages' are written again.
func (p *projection) recall(h *held) {
	for _, table := range []string{"trees", "sessions", "tags", "metadata", "runs", "usage", "parked"} {
		p.put("DELETE FROM "+table+" WHERE root = ?", h.root)
	}
	w := &written{sessions: map[string]writtenSession{}, runs: map[runPlace]readmodel.Run{}, messages: map[string][]uint64{}}
	h.written = w
	p.keep(p.each("SELECT session, sequence FROM messages WHERE root = ? ORDER BY session, n", []any{h.root}, func(row *sql.Rows) error {
		var session string
		var sequence int64
		err := row.Scan(&session, &sequence)
		w.messages[session] = append(w.messages[session], uint64(sequence))
		return err
	}))
}

func (p *projection) writeSessions(root string, sessions []readmodel.Session, w *written) {
	there := make(map[string]bool, len(sessions))
	for _, s := range sessions {
		there[s.SessionID] = true
		was, known := w.sessions[s.SessionID]
		now := writtenSession{
			doc: p.json(s), parent: s.ParentSessionID, agent: s.AgentType, user: s.UserID, status: string(s.Status),
			forked: s.ForkedFrom, expires: s.ExpiresAt,
			tags: strings.Join(s.Tags, "\x00"), metadata: p.json(s.Metadata),
		}
		w.sessions[s.SessionID] = now
		if was == now {
			continue
		}
		was.doc = now.doc
		if known && was == now { // so no index changes
			p.put("UPDATE sessions SET doc = ? WHERE root = ? AND session = ?", now.doc, root, s.SessionID)
		} else {
			p.writeSession(root, s, now.doc)
		}
	}
	p.forgetSessions(root, there, w)
}

// json returns a value's JSON.
func (p *projection) json(v any) string {
	raw, err := json.Marshal(v)
	p.keep(err)
	return string(raw)
}

// writeSession writes all of a session's row.
func (p *projection) writeSession(root string, s readmodel.Session, doc string) {
	expires := sql.NullInt64{Int64: s.ExpiresAt, Valid: s.ExpiresAt != 0}
	p.put(`INSERT OR REPLACE INTO sessions (root, session, parent, agent, user, status, forked, expires, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		root, s.SessionID, s.ParentSessionID, s.AgentType, s.UserID, string(s.Status), s.ForkedFrom, expires, doc)
	p.put("DELETE FROM tags WHERE root = ? AND session = ?", root, s.SessionID)
	for _, tag := range s.Tags {
		p.put("INSERT OR IGNORE INTO tags (tag, root, session) VALUES (?, ?, ?)", tag, root, s.SessionID)
	}
	p.put("DELETE FROM metadata WHERE root = ? AND session = ?", root, s.SessionID)
	for name, value := range s.Metadata {
		p.put("INSERT INTO metadata (name, value, root, session) VALUES (?, ?, ?, ?)", name, value, root, s.SessionID)
	}
}

// forgetSessions removes the sessions that a tree no longer has.
func (p *projection) forgetSessions(root string, there map[string]bool, w *written) {
	known := slices.Sorted(maps.Keys(w.sessions))
	for session := range w.messages {
		if _, ok := w.sessions[session]; !ok {
			known = append(known, session)
		}
	}
	for _, session := range known {
		if there[session] {
			continue
		}
		p.deleteWords("root = ? AND session = ?", root, session)
		for _, table := range []string{"sessions", "tags", "metadata", "messages"} {
			p.put("DELETE FROM "+table+" WHERE root = ? AND session = ?", root, session)
		}
		delete(w.sessions, session)
		delete(w.messages, session)
	}
}

// runPlace is the place of a run in its session.
type runPlace struct {
	session string
	n       int
}

func (p *projection) writeRuns(runs []readmodel.Run, w *written) {
	count := map[string]int{}
	for _, run := range runs {
		at := runPlace{run.SessionID, count[run.SessionID]}
		count[run.SessionID]++
		if was, ok := w.runs[at]; ok && was == run {
			continue
		}
		w.runs[at] = run
		p.put("INSERT OR REPLACE INTO runs (root, session, n, agent, user, status, started, doc) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			run.RootSessionID, at.session, at.n, run.AgentType, run.UserID, string(run.Status), run.StartedAt, p.json(run))
	}
	for at, run := range w.runs {
		if at.n < count[at.session] {
			continue
		}
		p.put("DELETE FROM runs WHERE root = ? AND session = ? AND n = ?", run.RootSessionID, at.session, at.n)
		delete(w.runs, at)
	}
}

func (p *projection) writeUsage(root string, cells []readmodel.UsageCell, w *written) {
	if slices.Equal(cells, w.usage) {
		return
	}
	type key struct{ session, run, model string }
	known := make(map[key]readmodel.UsageCell, len(w.usage))
	for _, c := range w.usage {
		known[key{c.SessionID, c.RunID, c.Model}] = c
	}
	for _, c := range cells {
		k := key{c.SessionID, c.RunID, c.Model}
		was, ok := known[k]
		delete(known, k)
		if ok && was == c {
			continue
		}
		t := c.Tokens
		p.put(`INSERT OR REPLACE INTO usage (root, session, run, model, agent, user, at, day, calls, prompt, completion,
			reasoning, cached, cache_write, total, tools, failed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			root, c.SessionID, c.RunID, c.Model, c.AgentType, c.UserID, c.At, c.Day(), c.ModelCalls, t.Prompt, t.Completion,
			t.Reasoning, t.Cached, t.CacheWrite, t.Total, c.ToolCalls, c.FailedToolCalls)
	}
	for k := range known {
		p.put("DELETE FROM usage WHERE root = ? AND session = ? AND run = ? AND model = ?", root, k.session, k.run, k.model)
	}
	w.usage = cells
}

// writeMessages writes the messages of a session that come after those already in the
// file. A message is identified by its place and its record.
func (p *projection) writeMessages(root string, t *projector.Tree, session string, w *written) {
	s := t.Get(session)
	if s == nil {
		return
	}
	was, same := w.messages[session], 0
	for same < len(was) && same < len(s.Messages) && was[same] == s.Messages[same].Sequence {
		same++
	}
	if same == len(was) && same == len(s.Messages) {
		return
	}
	if same < len(was) {
		p.deleteWords("root = ? AND session = ? AND n >= ?", root, session, same)
		p.put("DELETE FROM messages WHERE root = ? AND session = ? AND n >= ?", root, session, same)
	}
	now := was[:same:same]
	for n := same; n < len(s.Messages); n++ {
		m := &s.Messages[n]
		now = append(now, m.Sequence)
		p.put("INSERT INTO messages (root, session, n, sequence) VALUES (?, ?, ?, ?)", root, session, n, int64(m.Sequence))
		for _, text := range readmodel.Texts(m) {
			p.put("INSERT INTO texts (root, session, n, kind, role, tool, call, sequence, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
				root, session, n, string(text.Kind), string(m.Role), text.ToolName, text.ToolCallID, int64(m.Sequence), m.Timestamp)
			p.put("INSERT INTO words (rowid, text) VALUES (last_insert_rowid(), ?)", text.Text)
		}
	}
	w.messages[session] = now
}
