package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/readmodel"
)

type usageCmd struct {
	source.Flags
	periodFlags
	By      string `help:"What to sum by: agent, model, user or day (UTC, on which runs began)." default:"agent" enum:"agent,model,user,day"`
	Session string `type:"session" help:"Only of this session and those below it."`
	User    string `help:"Only of this user's sessions."`
	Agent   string `help:"Only of this agent type."`
}

func (c usageCmd) Run(p *flags.Process) error {
	q := given("by", c.By, "sessionId", c.Session, "userId", c.User, "agentType", c.Agent, "from", c.From, "to", c.To)
	return show(p, c.Flags, "/usage", q, func(w io.Writer, report api.UsageReport) {
		fmt.Fprintln(w, strings.ToUpper(c.By)+"\tSESSIONS\tRUNS\tCALLS\tPROMPT\tCACHED\tCOMPLETION\tREASONING\tTOOLS\tFAILED\tUSD")
		line := func(key string, u readmodel.UsageRow) {
			cost := fmt.Sprintf("%.4f", u.CostUSD)
			if len(u.Unpriced) > 0 {
				cost += "*"
			}
			terminal.Row(w, key, u.Sessions, u.Runs, u.ModelCalls, u.Tokens.Prompt, u.Tokens.Cached, u.Tokens.Completion, u.Tokens.Reasoning,
				u.ToolCalls, u.FailedToolCalls, cost)
		}
		for _, u := range report.Rows {
			line(u.Key, u)
		}
		line("in all", report.Total)
	}, func(report api.UsageReport) {
		if len(report.Total.Unpriced) > 0 {
			fmt.Fprintf(p.Stderr, "* without what these have cost, which have no price: %s\n", terminal.Printable(strings.Join(report.Total.Unpriced, ", ")))
		}
		source.NoteFresh(p.Stderr, report.Fresh)
	})
}
