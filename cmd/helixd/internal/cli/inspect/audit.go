package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/client"
)

type auditCmd struct {
	source.Flags
	Session string `arg:"" type:"session" help:"Session id."`
}

// audited is what a caller has done to a session.
type audited struct {
	Sequence uint64     `json:"sequence"`
	Time     string     `json:"time"` // when the record was written, UTC
	Action   string     `json:"action"`
	About    string     `json:"about,omitempty"` // the tool call, run or place that the action is about
	By       fact.Actor `json:"by"`
}

// Run lists the requests and their callers, rolled-back records included.
func (c auditCmd) Run(p *flags.Process) error {
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	all := []audited{}
	for r, err := range s.Records(p.Ctx, c.Session, client.RecordRange{Dead: true, Kind: eventlog.KindFact}) {
		if err != nil {
			return source.Explained(err)
		}
		if a, ok := auditOf(r); ok {
			all = append(all, a)
		}
	}
	if c.JSON {
		return json.NewEncoder(terminal.JSON(p.Stdout)).Encode(struct {
			Items []audited `json:"items"`
		}{all})
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tSEQUENCE\tACTION\tABOUT\tCALLER\tUSER\tADDRESS\tREQUEST")
	for _, a := range all {
		terminal.Row(w, a.Time, a.Sequence, a.Action, a.About, cmp.Or(a.By.Token, a.By.Subject), a.By.User, a.By.Address, a.By.Request)
	}
	return w.Flush()
}

// auditOf returns what a record says that a caller has done, if it does.
func auditOf(r eventlog.Record) (a audited, ok bool) {
	f, err := eventlog.DecodeFact(r.Payload)
	if err != nil {
		return a, false
	}
	by := fact.ActorIn(f)
	if by == nil {
		return a, false
	}
	a = audited{Sequence: r.Sequence, Time: terminal.Clock(f.At()), By: *by}
	switch f := f.(type) {
	case *fact.SessionCreated:
		a.Action, a.About = "create", f.AgentType
	case *fact.SessionImported:
		a.Action, a.About = "import", fmt.Sprintf("%d records", f.Records)
		if f.Backup > 0 {
			a.Action, a.About = "restore", fmt.Sprintf("%d records of the backup of %s", f.Records, terminal.Clock(f.Backup))
		}
	case *fact.SessionForked:
		a.Action, a.About = "fork", fmt.Sprintf("%s@%d", f.FromSessionID, f.FromSequence)
	case *fact.RunRequested:
		a.Action, a.About = "run ("+string(f.Mode)+")", f.RunID
	case *fact.UserMessage:
		a.Action, a.About = "add message", "user"
		return a, r.Run == "" // the message of a run goes with its request
	case *fact.MessageAdded:
		a.Action, a.About = "add message", string(f.Role)
		return a, r.Run == ""
	case *fact.MetadataReplaced:
		a.Action = "metadata"
	case *fact.RunDeleted:
		a.Action, a.About = "delete run", f.RunID
	case *fact.ResultSubmitted:
		a.Action, a.About = submissionWord(f), f.ToolCallID
	case *fact.InterruptRequested:
		a.Action, a.About = string(f.Kind), f.RunID
	case *eventlog.Truncated:
		a.Action, a.About = "rollback", fmt.Sprintf("to %d", f.AfterSequence)
	case *fact.StreamFailed:
		a.Action = "fail"
	default:
		return a, false // it goes with one of these
	}
	return a, true
}

func submissionWord(f *fact.ResultSubmitted) string {
	switch {
	case f.Kind == fact.SubmitApproval && f.Approved:
		return "approve"
	case f.Kind == fact.SubmitApproval:
		return "deny"
	}
	return "submit (" + strings.ReplaceAll(string(f.Kind), "_", "-") + ")"
}
