package inspect

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// liveFlags have a replay continue live, in a fork.
type liveFlags struct {
	Live         bool    `help:"Fork the session at --from, by default its head, run the fork, and show its stream. --message, --tool-result, --tool-error and --system-prompt edit the fork first; the model's output that followed from the edited part is left out."`
	Message      *string `help:"With --live: replaces the text of the last user message." placeholder:"TEXT"`
	ToolResult   string  `help:"With --live: replaces a tool call's result, or answers a call that waits." placeholder:"CALL=JSON" xor:"result"`
	ToolError    string  `help:"With --live: replaces a tool call's result with this error." placeholder:"CALL=TEXT" xor:"result"`
	SystemPrompt *string `help:"With --live: the system prompt in place of the agent's; @FILE is a file's content." placeholder:"TEXT|@FILE"`
	As           string  `help:"With --live: id of the fork; without it, one that the daemon chooses." placeholder:"ID"`
}

// check refuses flags that don't go together.
func (f liveFlags) check(c replayCmd) error {
	edits := f.Message != nil || f.ToolResult != "" || f.ToolError != "" || f.SystemPrompt != nil
	switch {
	case !f.Live && (edits || f.As != ""):
		return errors.New("--message, --tool-result, --tool-error, --system-prompt and --as go with --live")
	case !f.Live:
	case c.Verify || c.To != nil || c.SSE:
		return errors.New("--live can't be combined with --verify, --to or --sse")
	case c.From != nil && *c.From == 0: // which the daemon would take for the head
		return errors.New("there is nothing up to sequence 0")
	case c.NATS != "":
		return errors.New("--live needs a daemon that runs agents: it can't be combined with --nats")
	}
	return nil
}

// edit is what is asked for, nil if nothing is.
func (f liveFlags) edit() (*client.ForkEdit, error) {
	var e client.ForkEdit
	if f.Message != nil {
		e.Message = &client.MessageEdit{Content: *f.Message}
	}
	if given := f.ToolResult + f.ToolError; given != "" {
		call, value, ok := strings.Cut(given, "=")
		e.ToolResult = &client.ResultEdit{ToolCallID: call}
		switch {
		case !ok || call == "" || value == "":
			return nil, errors.New("--tool-result must be CALL=JSON, --tool-error CALL=TEXT")
		case f.ToolError != "":
			e.ToolResult.Error = value
		case !json.Valid([]byte(value)):
			return nil, errors.New("--tool-result: the text after CALL= must be JSON")
		default:
			e.ToolResult.Result = json.RawMessage(value)
		}
	}
	if f.SystemPrompt != nil {
		prompt := *f.SystemPrompt
		if file, ok := strings.CutPrefix(prompt, "@"); ok {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("--system-prompt: %w", err)
			}
			prompt = string(raw)
		}
		e.SystemPrompt = &prompt
	}
	if e == (client.ForkEdit{}) {
		return nil, nil
	}
	return &e, nil
}

// goOn makes the fork, and shows its stream. It has its whole past in its first
// record, so the stream begins where it parts.
func (c replayCmd) goOn(p *flags.Process, s *source.Source) error {
	edit, err := c.edit()
	if err != nil {
		return err
	}
	fork, err := s.Fork(p.Ctx, c.Session, client.ForkRequest{Target: client.Target{Sequence: c.after()}, SessionID: c.As, Edit: edit, Run: true})
	if err != nil {
		return source.Explained(err)
	}
	words := fmt.Sprintf("%s is what %s was at %d%s", terminal.Printable(fork.SessionID), terminal.Printable(fork.FromSessionID), fork.FromSequence, edited(fork))
	if err := terminal.Result(p.Stdout, c.JSON, fork, words); err != nil {
		return err
	}
	c.From = nil // it is a sequence of the other session
	return c.watch(p, s, fork.SessionID, "/sse", url.Values{"sessionId": {fork.SessionID}},
		"the fork runs on: helixd tail "+source.Argument(fork.SessionID)+" --from")
}

// edited says what of a fork was edited.
func edited(fork api.Forked) string {
	e := fork.Edits
	if e == nil {
		return ""
	}
	var what []string
	if e.Message != nil {
		what = append(what, fmt.Sprintf("message (%d)", *e.Message))
	}
	if e.ToolCallID != "" {
		what = append(what, "result of "+terminal.Printable(e.ToolCallID))
	}
	if e.SystemPrompt {
		what = append(what, "system prompt")
	}
	return ", with another " + strings.Join(what, ", another ")
}
