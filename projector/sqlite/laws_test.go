package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// Whatever happens to sessions, and however often the models are stopped, built again or
// short of memory, the rows are those of the folds.
func TestRowsAreThoseOfTheFolds(t *testing.T) {
	t.Parallel()
	rnd := testkit.Random(t)
	rounds, steps := 6, 60
	if !testkit.InFull() {
		rounds, steps = 2, 20
	}
	for range rounds {
		w := newWorld(t)
		w.opts.Logger = nil
		w.opts.MaxFolds = 1 + rnd.IntN(5)
		w.open()
		all := map[string]*history{}
		for range steps {
			id := fmt.Sprint("s", rnd.IntN(6))
			h := all[id]
			if h == nil {
				h = &history{rnd: rnd, root: id, tree: new(projector.Tree)}
				all[id] = h
			}
			w.append(id, h.next(h.tree.Head)...)
			h.tree = fresh(w, id)
			if rnd.IntN(3) == 0 {
				h.past = append(h.past, fresh(w, id))
			}
			switch rnd.IntN(20) {
			case 0:
				w.open()
			case 1:
				_, err := w.log.Erase(t.Context(), id)
				require.NoError(t, err)
				delete(all, id)
			case 2:
				w.close()
				if rnd.IntN(2) == 0 {
					require.NoError(t, removeFile(w.opts.Path))
				}
				w.open()
			case 3:
				require.Equal(t, len(all), w.sessions(readmodel.SessionFilter{}).Total)
			}
		}
		require.Equal(t, expected(w, all), inFile(w))
		w.close()
	}
}

// fresh folds all records of a session.
func fresh(w *world, id string) *projector.Tree {
	w.t.Helper()
	tree := new(projector.Tree)
	for r, err := range w.log.Read(w.t.Context(), id, 0, 0) {
		require.NoError(w.t, err)
		projector.Apply(tree, r)
	}
	return tree
}

// rowsOf are rows as texts, by table, sorted.
type rowsOf map[string][]string

func (r rowsOf) add(table string, columns ...any) {
	text, err := json.Marshal(columns)
	if err != nil {
		panic(err)
	}
	r[table] = append(r[table], string(text))
}

func (r rowsOf) sorted() rowsOf {
	for _, rows := range r {
		slices.Sort(rows)
	}
	return r
}

func expected(w *world, all map[string]*history) rowsOf {
	want := rowsOf{}
	for id := range all {
		tree := fresh(w, id)
		rows := readmodel.Derive(id, tree)
		want.add("trees", id, tree.Head)
		for _, s := range rows.Sessions {
			want.add("sessions", id, s.SessionID, s.ParentSessionID, s.AgentType, s.UserID, s.Status, s.ForkedFrom, encoded(s))
			for _, tag := range s.Tags {
				want.add("tags", tag, id, s.SessionID)
			}
			for n, m := range tree.Get(s.SessionID).Messages {
				want.add("messages", id, s.SessionID, n, m.Sequence)
				for _, x := range readmodel.Texts(&m) {
					want.add("texts", id, s.SessionID, n, x.Kind, m.Role, x.ToolName, x.ToolCallID, m.Sequence, m.Timestamp, x.Text)
				}
			}
		}
		count := map[string]int{}
		for _, run := range rows.Runs {
			want.add("runs", id, run.SessionID, count[run.SessionID], run.AgentType, run.UserID, run.Status, run.StartedAt, encoded(run))
			count[run.SessionID]++
		}
		sum := map[string]fact.TokenUsage{}
		for _, c := range rows.Usage {
			k := c.Tokens
			want.add("usage", id, c.SessionID, c.RunID, c.Model, c.AgentType, c.UserID, c.At, c.Day(), c.ModelCalls, k.Prompt, k.Completion,
				k.Reasoning, k.Cached, k.CacheWrite, k.Total, c.ToolCalls, c.FailedToolCalls)
			s := sum[c.SessionID]
			s.Prompt, s.Completion, s.Total = s.Prompt+k.Prompt, s.Completion+k.Completion, s.Total+k.Total
			sum[c.SessionID] = s
		}
		for _, s := range tree.Sessions() {
			require.Equal(w.t, s.Usage.Tokens, sum[s.SessionID], "all that was used is in a cell")
		}
		for _, p := range rows.Parked {
			want.add("parked", id, p.Sequence, 0, p.Type, p.Reason)
		}
	}
	return want.sorted()
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// inFile returns the rows of the file once it is current.
func inFile(w *world) rowsOf {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.models.await(w.t.Context()).Current }, time.Minute, time.Millisecond)
	got := rowsOf{}
	for table, columns := range map[string]string{
		"trees": "root, head", "sessions": "root, session, parent, agent, user, status, forked, doc", "tags": "tag, root, session",
		"messages": "root, session, n, sequence", "runs": "root, session, n, agent, user, status, started, doc",
		"usage": "root, session, run, model, agent, user, at, day, calls, prompt, completion, reasoning, cached, cache_write, total, tools, failed",
		"texts": "root, session, n, kind, role, tool, call, sequence, at, words.text", "parked": "root, sequence, stuck, type, reason",
	} {
		from := table
		if table == "texts" {
			from = "texts JOIN words ON words.rowid = texts.id"
		}
		_, err := look(w.t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (none struct{}, err error) {
			return none, each(w.t.Context(), tx, "SELECT "+columns+" FROM "+from, nil, func(row *sql.Rows) error {
				values := make([]any, strings.Count(columns, ",")+1)
				into := make([]any, len(values))
				for i := range values {
					into[i] = &values[i]
				}
				if err := row.Scan(into...); err != nil {
					return err
				}
				got.add(table, values...)
				return nil
			})
		})
		require.NoError(w.t, err)
	}
	return got.sorted()
}
