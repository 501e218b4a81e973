package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/helixd/helixd/projector/readmodel"
)

// usageColumns are the columns that usage is summed by.
var usageColumns = map[readmodel.UsageKey]string{
	readmodel.ByAgent: "agent", readmodel.ByModel: "model", readmodel.ByUser: "user", readmodel.ByDay: "day",
}

// Usage implements readmodel.Models. It uses the current prices.
func (m *Models) Usage(ctx context.Context, q readmodel.UsageQuery) (readmodel.Answer[readmodel.UsageReport], error) {
	column, ok := usageColumns[q.By]
	if !ok {
		return readmodel.Answer[readmodel.UsageReport]{}, &readmodel.QueryError{Field: "by", Reason: "must be agent, model, user or day"}
	}
	var w where
	w.between("at", q.From, q.To)
	w.equal("user", q.UserID)
	w.tenant(q.Tenant)
	w.equal("agent", q.AgentType)
	w.equal("root", q.SessionID)
	if q.By == readmodel.ByModel {
		w.and("model <> ''")
	}
	text := "SELECT " + column + `, root, model, session, run, sum(calls), sum(prompt), sum(completion), sum(reasoning), sum(cached),
		sum(cache_write), sum(total), sum(tools), sum(failed) FROM usage` + w.String() + " GROUP BY " + column + ", root, session, run, model"
	return ask(ctx, m, func(ctx context.Context, tx *sql.Tx) (readmodel.UsageReport, error) {
		sums := &usageSums{prices: *m.prices.Load(), rows: map[string]*usageSum{}}
		visible := remembered(q.Visible)
		err := each(ctx, tx, text, w.args, func(row *sql.Rows) error {
			var c usageRow
			if err := c.scan(row); err != nil || !visible(c.root) {
				return err
			}
			sums.add(c)
			return nil
		})
		return sums.report(q.By), err
	})
}

// usageRow is what one run has used of one model.
type usageRow struct {
	key, root, model, session, run string
	used                           readmodel.Used
}

func (c *usageRow) scan(row *sql.Rows) error {
	t := &c.used.Tokens
	return row.Scan(&c.key, &c.root, &c.model, &c.session, &c.run, &c.used.ModelCalls, &t.Prompt, &t.Completion, &t.Reasoning,
		&t.Cached, &t.CacheWrite, &t.Total, &c.used.ToolCalls, &c.used.FailedToolCalls)
}

// usageSums sums rows by key, and in total.
type usageSums struct {
	prices map[string]readmodel.Price
	rows   map[string]*usageSum
	total  usageSum
}

func (s *usageSums) add(c usageRow) {
	row := s.rows[c.key]
	if row == nil {
		row = &usageSum{}
		row.Key = c.key
		s.rows[c.key] = row
	}
	row.add(c, s.prices)
	s.total.add(c, s.prices)
}

func (s *usageSums) report(by readmodel.UsageKey) readmodel.UsageReport {
	r := readmodel.UsageReport{By: by, Rows: []readmodel.UsageRow{}, Total: s.total.done()}
	for _, key := range slices.Sorted(maps.Keys(s.rows)) {
		r.Rows = append(r.Rows, s.rows[key].done())
	}
	return r
}

// usageSum is one row of a report as it grows.
type usageSum struct {
	readmodel.UsageRow
	sessions map[[2]string]bool
	runs     map[[3]string]bool
	unpriced map[string]bool
}

func (s *usageSum) add(c usageRow, prices map[string]readmodel.Price) {
	if s.sessions == nil {
		s.sessions, s.runs, s.unpriced = map[[2]string]bool{}, map[[3]string]bool{}, map[string]bool{}
	}
	s.sessions[[2]string{c.root, c.session}] = true
	if c.run != "" {
		s.runs[[3]string{c.root, c.session, c.run}] = true
	}
	s.ModelCalls += c.used.ModelCalls
	s.ToolCalls += c.used.ToolCalls
	s.FailedToolCalls += c.used.FailedToolCalls
	s.Tokens = s.Tokens.Plus(c.used.Tokens)
	if c.model == "" {
		return
	}
	price, ok := prices[c.model]
	if !ok {
		s.unpriced[c.model] = true
	}
	s.CostUSD += price.Cost(c.used.Tokens)
}

func (s *usageSum) done() readmodel.UsageRow {
	s.Sessions, s.Runs = len(s.sessions), len(s.runs)
	s.Unpriced = slices.SortedFunc(maps.Keys(s.unpriced), cmp.Compare)
	return s.UsageRow
}
