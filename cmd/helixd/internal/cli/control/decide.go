package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// decideFlags are of the commands that answer a call that waits.
type decideFlags struct {
	followFlags
	Session string `arg:"" type:"session" help:"Session id."`
	Call    string `help:"Id of the tool call; it may be left out if one alone waits." placeholder:"ID"`
	Resume  bool   `help:"Continue the run when no call waits any more." default:"true" negatable:""`
}

type approveCmd struct {
	decideFlags
	Reason string `help:"Why; it is stored with the approval."`
}

func (c approveCmd) Run(p *flags.Process) error {
	return c.decide(p, "approved", client.Submission{Kind: fact.SubmitApproval, Approved: true, Reason: c.Reason})
}

type denyCmd struct {
	decideFlags
	Reason string `help:"Why; the model reads it."`
}

func (c denyCmd) Run(p *flags.Process) error {
	return c.decide(p, "denied", client.Submission{Kind: fact.SubmitApproval, Reason: c.Reason})
}

type answerCmd struct {
	decideFlags
	Result string `arg:"" optional:"" help:"The result, as JSON."`
	Error  string `help:"That the tool has failed, in place of a result." placeholder:"TEXT"`
}

// Validate makes a bad result a matter of usage.
func (c answerCmd) Validate() error {
	switch {
	case (c.Result == "") == (c.Error == ""):
		return errors.New("give either the result or --error")
	case c.Result != "" && !json.Valid([]byte(c.Result)):
		return fmt.Errorf("the result is not JSON; a text is '%q'", c.Result)
	}
	return nil
}

func (c answerCmd) Run(p *flags.Process) error {
	answer := client.Submission{Kind: fact.SubmitClientResult, Error: c.Error}
	if c.Error == "" {
		answer.Result = json.RawMessage(c.Result)
	}
	return c.decide(p, "answered", answer)
}

// decide answers a call, and continues the run.
func (f decideFlags) decide(p *flags.Process, done string, answer client.Submission) error {
	s := f.Connect()
	after, err := f.head(p, s, f.Session)
	if err != nil {
		return err
	}
	if f.Call == "" {
		if f.Call, err = onlyCall(p, s, f.Session, answer.Kind == fact.SubmitApproval); err != nil {
			return err
		}
	}
	answer.SessionID, answer.ToolCallID = f.Session, f.Call
	submitted, err := s.SubmitToolResult(p.Ctx, answer)
	if err != nil {
		return source.Explained(err)
	}
	if submitted.Status != "accepted" {
		why := ""
		if submitted.Reason != "" {
			why = " (" + submitted.Reason + ")"
		}
		return fmt.Errorf("%s has an answer already, which counts%s", terminal.Printable(f.Call), why)
	}
	words := f.Call + " is " + done
	switch left := len(submitted.PendingToolCallIDs); {
	case left > 0:
		words += fmt.Sprintf("; %s: %s", terminal.Count(left, "more call waits"), strings.Join(submitted.PendingToolCallIDs, ", "))
		f.Follow = false
	case !f.Resume:
		words += "; helixd resume " + source.Argument(f.Session) + " continues the run"
		f.Follow = false
	default:
		if _, err := s.Resume(p.Ctx, client.ResumeRequest{SessionID: f.Session}); err != nil {
			return fmt.Errorf("%s is %s, and the run can't continue: %w", terminal.Printable(f.Call), done, source.Explained(err))
		}
		words += ", and the run continues"
	}
	return f.done(p, s, f.Session, after, submitted, words)
}

// pending returns the calls of a session that wait for an answer.
func pending(p *flags.Process, s *source.Source, session string) ([]api.PendingToolCall, error) {
	summary, err := s.Session(p.Ctx, session)
	return summary.PendingToolCalls, source.Explained(err)
}

func isApproval(c api.PendingToolCall) bool { return c.Kind == fact.PendingApproval }

// onlyCall returns the id of the call that waits, if there is one of its kind.
func onlyCall(p *flags.Process, s *source.Source, session string, approval bool) (string, error) {
	all, err := pending(p, s, session)
	if err != nil {
		return "", err
	}
	kind := "a result"
	if approval {
		kind = "approval"
	}
	var ids []string
	for _, c := range all {
		if isApproval(c) == approval {
			ids = append(ids, c.ToolCallID)
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("no call of %s waits for %s", terminal.Printable(session), kind)
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("several calls wait for %s, name one with --call: %s", kind, terminal.Printable(strings.Join(ids, ", ")))
}
