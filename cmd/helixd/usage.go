package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/projector/readmodel"
)

type usageCmd struct {
	sourceFlags
	periodFlags
	By      string `help:"What to sum by: agent, model, user or day (UTC, on which runs began)." default:"agent" enum:"agent,model,user,day"`
	Session string `help:"Only of this session and those below it."`
	User    string `help:"Only of this user's sessions."`
	Agent   string `help:"Only of this agent type."`
}

func (c usageCmd) Run(p *process) error {
	q := given("by", c.By, "sessionId", c.Session, "userId", c.User, "agentType", c.Agent, "from", c.From, "to", c.To)
	var report httpapi.UsageReport
	return show(p, c.sourceFlags, "/usage", q, &report, func(w io.Writer) {
		fmt.Fprintln(w, strings.ToUpper(c.By)+"\tSESSIONS\tRUNS\tCALLS\tPROMPT\tCACHED\tCOMPLETION\tREASONING\tTOOLS\tFAILED\tUSD")
		line := func(key string, u readmodel.UsageRow) {
			cost := fmt.Sprintf("%.4f", u.CostUSD)
			if len(u.Unpriced) > 0 {
				cost += "*"
			}
			row(w, key, u.Sessions, u.Runs, u.ModelCalls, u.Tokens.Prompt, u.Tokens.Cached, u.Tokens.Completion, u.Tokens.Reasoning,
				u.ToolCalls, u.FailedToolCalls, cost)
		}
		for _, u := range report.Rows {
			line(u.Key, u)
		}
		line("in all", report.Total)
	}, func() {
		if len(report.Total.Unpriced) > 0 {
			fmt.Fprintf(p.stderr, "* without what these have cost, which have no price: %s\n", printable(strings.Join(report.Total.Unpriced, ", ")))
		}
		tellFresh(p, report.Fresh)
	})
}
