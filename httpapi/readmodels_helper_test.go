package httpapi_test

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// foldedRows are read models that fold the log whenever they are asked. They
// know as much as the tests here need: who may see what, and what is filtered.
type foldedRows struct{ log eventlog.Log }

// each calls visit with all sessions that may be seen, and their trees.
func (f foldedRows) each(ctx context.Context, visible readmodel.Visible, visit func(*projector.Tree, *projector.Session)) error {
	for id, err := range f.log.Sessions(ctx) {
		if err != nil {
			return err
		}
		if eventlog.IsMemoryLog(id) || visible != nil && !visible(id) {
			continue
		}
		t := new(projector.Tree)
		for r, err := range f.log.Read(ctx, id, 0, 0) {
			if err != nil {
				return err
			}
			projector.Apply(t, r)
		}
		for _, s := range t.Sessions() {
			visit(t, s)
		}
	}
	return nil
}

func rowsPage[T any](all []T, p readmodel.Paging) readmodel.Answer[readmodel.Page[T]] {
	from := min(p.Offset, len(all))
	to := min(from+p.Limit, len(all))
	return readmodel.Answer[readmodel.Page[T]]{
		Value: readmodel.Page[T]{Items: all[from:to], Total: len(all), Offset: p.Offset, Limit: p.Limit, HasMore: to < len(all)},
		Fresh: readmodel.Fresh{Current: true},
	}
}

func hasAll(metadata, wanted map[string]string) bool {
	for name, value := range wanted {
		if metadata[name] != value {
			return false
		}
	}
	return true
}

func (f foldedRows) Sessions(ctx context.Context, q readmodel.SessionFilter) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
	var all []readmodel.Session
	err := f.each(ctx, q.Visible, func(t *projector.Tree, s *projector.Session) {
		parent := ""
		if s != &t.Session {
			parent = t.SessionID
			if s.Child != nil {
				parent = s.Child.ParentSessionID
			}
		}
		is := func(wanted, value string) bool { return wanted == "" || wanted == value }
		if parent != q.ParentSessionID || !is(q.AgentType, s.AgentType) || !is(q.UserID, s.UserID) ||
			s.CreatedAt < q.From || q.To != 0 && s.CreatedAt >= q.To || !hasAll(s.Metadata, q.Metadata) ||
			!is(string(q.Status), string(s.Status)) || !is(string(q.StreamStatus), string(s.StreamStatus)) || q.Tag != "" && !slices.Contains(s.Tags, q.Tag) {
			return
		}
		from := ""
		if s == &t.Session && t.ForkedFrom != nil {
			from = t.ForkedFrom.SessionID
		}
		if !is(q.ForkedFrom, from) {
			return
		}
		steps := 0
		for _, run := range s.Runs {
			steps += run.StepCount
		}
		all = append(all, readmodel.Session{
			ForkedFrom: from,
			SessionID:  s.SessionID, RootSessionID: t.SessionID, ParentSessionID: parent, StreamID: s.StreamID, AgentType: s.AgentType,
			Status: s.Status, StreamStatus: s.StreamStatus, Running: s.Running(), Claim: t.Claim, CurrentRun: s.CurrentRun(),
			UserID: s.UserID, Tags: s.Tags, Metadata: s.Metadata, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, HeadSequence: t.Head,
			Counts: readmodel.Counts{Messages: len(s.Messages), Steps: steps, Runs: len(s.Runs), Checkpoints: len(s.Checkpoints)},
		})
	})
	slices.SortFunc(all, func(a, b readmodel.Session) int {
		if q.Sort == readmodel.ByUpdated {
			return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(b.SessionID, a.SessionID))
		}
		return cmp.Compare(a.SessionID, b.SessionID)
	})
	return rowsPage(all, q.Paging), err
}

func (f foldedRows) Runs(ctx context.Context, q readmodel.RunFilter) (readmodel.Answer[readmodel.Page[readmodel.Run]], error) {
	var all []readmodel.Run
	err := f.each(ctx, q.Visible, func(t *projector.Tree, s *projector.Session) {
		for _, run := range s.Runs {
			all = append(all, readmodel.Run{SessionID: s.SessionID, RootSessionID: t.SessionID, AgentType: s.AgentType, UserID: t.UserID, Run: run})
		}
	})
	return rowsPage(all, q.Paging), err
}

func (f foldedRows) Usage(ctx context.Context, q readmodel.UsageQuery) (readmodel.Answer[readmodel.UsageReport], error) {
	found := readmodel.UsageReport{By: q.By}
	err := f.each(ctx, q.Visible, func(_ *projector.Tree, s *projector.Session) {
		found.Rows = append(found.Rows, readmodel.UsageRow{Key: s.SessionID, Sessions: 1})
		found.Total.Sessions++
	})
	return readmodel.Answer[readmodel.UsageReport]{Value: found, Fresh: readmodel.Fresh{Current: true}}, err
}

func (f foldedRows) Search(ctx context.Context, q readmodel.SearchQuery) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
	var all []readmodel.Hit
	err := f.each(ctx, q.Visible, func(t *projector.Tree, s *projector.Session) {
		for range s.Messages {
			all = append(all, readmodel.Hit{SessionID: s.SessionID, RootSessionID: t.SessionID, Snippet: secretOf(t)})
		}
	})
	return rowsPage(all, q.Paging), err
}

func (f foldedRows) Parked(ctx context.Context, q readmodel.ParkedFilter) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
	var all []readmodel.Parked
	err := f.each(ctx, q.Visible, func(t *projector.Tree, s *projector.Session) {
		if q.UserID != "" && q.UserID != t.UserID {
			return
		}
		all = append(all, readmodel.Parked{SessionID: t.SessionID, Sequence: t.Head, Type: "odd", Reason: secretOf(t)})
	})
	return rowsPage(all, q.Paging), err
}

// secretOf is what only those may see who may see a tree, or what it was forked
// from.
func secretOf(t *projector.Tree) string {
	return classified(strings.TrimSuffix(t.SessionID, "-fork"))
}

// Expiring yields what is wrong with the log, and no session.
func (f foldedRows) Expiring(ctx context.Context, _ time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, err := range f.log.Sessions(ctx) {
			if err != nil {
				yield("", err)
			}
		}
	}
}

func (foldedRows) Fresh(context.Context) readmodel.Fresh { return readmodel.Fresh{Current: true} }
