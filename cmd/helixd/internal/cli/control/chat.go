package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
)

type chatCmd struct {
	watchFlags
	Agent   string `arg:"" optional:"" help:"Agent type; a session that exists has one."`
	Session string `type:"session" help:"Id of the session: one that exists is shown and continued; without it, a new one is chosen." placeholder:"ID"`
	User    string `help:"Whose the session is."`
}

// Help is shown by helixd chat --help.
func (chatCmd) Help() string {
	return "Each line is a message. A call that needs approval is asked about, and a client's tool asks for its result. " +
		"The end of the input, Ctrl-D, ends the chat and not the session."
}

// Validate makes a chat with nobody a matter of usage.
func (c chatCmd) Validate() error {
	if c.Agent == "" && c.Session == "" {
		return errors.New("give the agent, or a session with --session")
	}
	return nil
}

// chat is a conversation in progress.
type chat struct {
	chatCmd
	p    *flags.Process
	s    *source.Source
	seen uint64              // the last sequence that was shown
	runs bool                // the session exists
	said []projector.Message // of it, when the chat began
}

func (c chatCmd) Run(p *flags.Process) error {
	s, err := c.ConnectPatiently(p.Ctx)
	if err != nil {
		return err
	}
	t := &chat{chatCmd: c, p: p, s: s}
	if c.Session == "" {
		t.Session = newSession(c.Agent)
	} else if past, err := t.s.State(p.Ctx, c.Session); err == nil {
		t.runs, t.said = true, past.State.Messages
	} else if e, is := errors.AsType[*client.Error](err); !is || e.Code != api.CodeNotFound || c.Agent == "" {
		return source.Explained(err)
	}
	fmt.Fprintln(p.Stderr, "session", terminal.Printable(t.Session))
	err = t.talk()
	if err == io.EOF { // errors.Is would also match a lost connection, whose error wraps io.EOF
		fmt.Fprintf(p.Stderr, "\nContinue with helixd chat --session %s\n", source.Argument(t.Session))
		return nil
	}
	return err
}

// talk takes turns until there is an error; the end of the input is io.EOF.
func (t *chat) talk() error {
	if t.runs {
		if err := t.listen(); err != nil {
			return err
		}
	}
	for {
		text, err := t.p.Ask("> ")
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		if err := t.say(text); err != nil {
			return err
		}
		if err := t.listen(); err != nil {
			return err
		}
	}
}

// say sends a message. A run that another client has begun is shown first.
func (t *chat) say(text string) error {
	err := t.send(text)
	for t.runs && isRunning(err) {
		before := t.seen
		if now, err := t.s.State(t.p.Ctx, t.Session); err == nil {
			t.said = slices.DeleteFunc(now.State.Messages, func(m projector.Message) bool { return m.Sequence <= before })
		}
		if err := t.listen(); err != nil {
			return err
		}
		if err = t.send(text); t.seen == before { // the stream does not show what runs
			break
		}
	}
	if err != nil {
		return refused(err, t.Session)
	}
	t.runs = true
	return nil
}

// isRunning reports whether a message was refused since a run is under way.
func isRunning(err error) bool {
	e, is := errors.AsType[*client.Error](err)
	return is && e.Code == api.CodeAlreadyRunning
}

func (t *chat) send(text string) (err error) {
	if t.runs {
		_, err = t.s.SendMessage(t.p.Ctx, client.MessageRequest{SessionID: t.Session, Messages: client.Text(text), UserID: t.User})
	} else {
		_, err = t.s.Start(t.p.Ctx, client.StartRequest{SessionID: t.Session, AgentType: t.Agent, Messages: client.Text(text), UserID: t.User})
	}
	return err
}

// listen shows the run, and has its calls answered, until it ends or a person leaves a
// call open.
func (t *chat) listen() error {
	for {
		end, seen, err := t.watch(t.p, t.s, t.Session, t.seen, t.said...)
		if err != nil {
			return err
		}
		t.seen, t.said = seen, nil
		stopped, ok := end.(client.EndEvent)
		if !ok || stopped.Status != remote.StatusPaused {
			return nil
		}
		calls, err := pending(t.p, t.s, t.Session)
		if err != nil || len(calls) == 0 { // it waits for no answer, as a fork within a turn: the user may send a message
			return err
		}
		for _, c := range calls {
			if answered, err := t.answer(c); err != nil || !answered {
				return err
			}
		}
		if _, err := t.s.Resume(t.p.Ctx, client.ResumeRequest{SessionID: t.Session}); err != nil {
			return source.Explained(err)
		}
	}
}

// answer has a person answer a call. An answer that the daemon refuses is asked for again.
func (t *chat) answer(c api.PendingToolCall) (answered bool, err error) {
	call := terminal.Spaced(c.ToolName, string(c.Input))
	for {
		answer := client.Submission{SessionID: t.Session, ToolCallID: c.ToolCallID, ApprovalID: c.ApprovalID}
		if isApproval(c) {
			answer.Kind = fact.SubmitApproval
			if answer.Approved, err = t.p.Decide("Approve " + call + "?"); err != nil {
				return false, err
			}
		} else {
			text, err := t.p.Ask("Result of " + call + ", as JSON (nothing: leave it open): ")
			if err != nil || text == "" {
				return false, err
			}
			if answer.Kind, answer.Result = fact.SubmitClientResult, json.RawMessage(text); !json.Valid(answer.Result) {
				answer.Result, _ = json.Marshal(text) // a word is a string
			}
		}
		_, err := t.s.SubmitToolResult(t.p.Ctx, answer)
		if e, is := errors.AsType[*client.Error](err); is && e.Code == api.CodeInvalidRequest {
			fmt.Fprintln(t.p.Stderr, source.Explained(err))
			continue
		}
		return err == nil, source.Explained(err)
	}
}
