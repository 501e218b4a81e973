package control

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

type runCmd struct {
	watchFlags
	Agent   string   `arg:"" help:"Agent type."`
	Message string   `arg:"" optional:"" default:"-" help:"The user's message; - is the standard input."`
	Session string   `type:"session" help:"Id of the new session; without it, one is chosen." placeholder:"ID"`
	User    string   `help:"Whose the session is."`
	Tag     []string `help:"A word by which the session is found; can be given several times."`
	Follow  bool     `help:"Show the run until it ends or waits." default:"true" negatable:""`
}

// Help is shown by helixd run --help.
func (runCmd) Help() string {
	return "The exit code is 0 if the run completes, 1 if it fails, 3 if it waits for an approval or a client's answer, and 4 if it is interrupted. " +
		"A run does not end with this command: after Ctrl-C it continues, and helixd tail shows it."
}

func (c runCmd) Run(p *flags.Process) error {
	text, err := message(p, c.Message)
	if err != nil {
		return err
	}
	s, err := c.ConnectPatiently(p.Ctx)
	if err != nil {
		return err
	}
	if c.Session == "" {
		c.Session = newSession(c.Agent)
	}
	started, err := s.Start(p.Ctx, client.StartRequest{
		SessionID: c.Session, AgentType: c.Agent, Messages: client.Text(text), UserID: c.User, Tags: c.Tag,
	})
	if err != nil {
		return refused(err, c.Session)
	}
	if !c.Follow {
		return followFlags{watchFlags: c.watchFlags}.done(p, s, c.Session, 0, started, c.Session)
	}
	fmt.Fprintln(p.Stderr, "session", terminal.Printable(c.Session))
	end, _, err := c.watch(p, s, c.Session, 0)
	if err != nil {
		return err
	}
	return outcome(p, s, c.Session, end)
}

// refused says what to do about a session that is finished.
func refused(err error, session string) error {
	if e, is := errors.AsType[*client.Error](err); is && e.Code == api.CodeAlreadyCompleted {
		return fmt.Errorf("%s is finished: helixd say %s 'MESSAGE' begins its next turn", terminal.Printable(session), source.Argument(session))
	}
	return source.Explained(err)
}

// newSession returns an id that no other session has.
func newSession(agent string) string {
	return agent + "-" + strings.ToLower(rand.Text()[:12])
}

// message is a message of the command line or, for -, the standard input.
func message(p *flags.Process, text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	if terminal.IsTerminal(p.Stdin) {
		return "", flags.Misused(errors.New("give a message: the standard input is a terminal"))
	}
	raw, err := io.ReadAll(io.LimitReader(p.Stdin, api.MaxBody+1))
	if text = strings.TrimSpace(string(raw)); err == nil && text == "" {
		err = flags.Misused(errors.New("give a message: the standard input is empty"))
	}
	return text, err
}

type sayCmd struct {
	followFlags
	Session        string `arg:"" type:"session" help:"Session id."`
	Message        string `arg:"" optional:"" default:"-" help:"The user's message; - is the standard input."`
	User           string `help:"The session's user."`
	IdempotencyKey string `help:"Makes it safe to repeat the command."`
}

// Run begins a session's next turn, or continues one that was interrupted or waits.
func (c sayCmd) Run(p *flags.Process) error {
	text, err := message(p, c.Message)
	if err != nil {
		return err
	}
	s, err := c.ConnectPatiently(p.Ctx)
	if err != nil {
		return err
	}
	after, err := c.head(p, s, c.Session)
	if err != nil {
		return err
	}
	started, err := s.SendMessage(p.Ctx, client.MessageRequest{
		SessionID: c.Session, Messages: client.Text(text), UserID: c.User, IdempotencyKey: c.IdempotencyKey,
	})
	if err != nil {
		return source.Explained(err)
	}
	return c.done(p, s, c.Session, after, started, started.RunID+" of "+c.Session+" has begun")
}
