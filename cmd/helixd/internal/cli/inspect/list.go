package inspect

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// listFlags are of the commands that show a page of what there is.
type listFlags struct {
	source.Flags
	Limit  int `help:"At most so many, up to 200." default:"50"`
	Offset int `help:"Leave out so many."`
}

// periodFlags say when runs began.
type periodFlags struct {
	From string `help:"Only what began then or later: a day (UTC) such as 2026-01-31, a time of RFC 3339, or ms since the epoch."`
	To   string `help:"Only what began before, in the same forms."`
}

type sessionsCmd struct {
	listFlags
	User   string `help:"Only sessions of this user."`
	Agent  string `help:"Only sessions of this agent type." aliases:"agent-type"`
	Status string `help:"Only sessions of this status: active, paused, interrupted, completed or failed."`
	Tag    string `help:"Only sessions with this tag."`

	Metadata []string `help:"Only sessions whose metadata has this entry; may be repeated." placeholder:"NAME=VALUE" sep:"none"`

	From   string `help:"Only sessions created then or later: a day (UTC) such as 2026-01-31, a time of RFC 3339, or ms since the epoch."`
	To     string `help:"Only sessions created before, in the same forms."`
	Parent string `help:"The sessions that this one has called, instead of roots."`
	Forks  string `help:"Only forks of this session." placeholder:"SESSION"`
}

func (c sessionsCmd) Run(p *flags.Process) error {
	q := given("userId", c.User, "agentType", c.Agent, "status", c.Status, "tag", c.Tag, "parentSessionId", c.Parent, "forkedFrom", c.Forks, "from", c.From, "to", c.To)
	q["metadata"] = c.Metadata
	return list(p, c.listFlags, "/sessions", q, "SESSION\tAGENT\tSTATUS\tUSER\tMESSAGES\tRUNS\tUPDATED\tHEAD", func(w io.Writer, s api.Summary) {
		status := s.Status
		if status == projector.SessionActive && s.StreamStatus == eventlog.StreamWaiting {
			status = projector.SessionPaused // as --status calls it
		}
		terminal.Row(w, s.SessionID, s.AgentType, string(status), s.UserID, s.Counts.Messages, s.Counts.Runs, terminal.Clock(s.UpdatedAt), s.HeadSequence)
	})
}

type runsCmd struct {
	listFlags
	periodFlags
	Session string `type:"session" help:"Only runs of this session."`
	User    string `help:"Only runs of this user's sessions."`
	Agent   string `help:"Only runs of this agent type."`
	Status  string `help:"Only runs of this status: running, completed, failed, interrupted, or what they wait for."`
}

func (c runsCmd) Run(p *flags.Process) error {
	q := given("sessionId", c.Session, "userId", c.User, "agentType", c.Agent, "status", c.Status, "from", c.From, "to", c.To)
	return list(p, c.listFlags, "/runs", q, "RUN\tSESSION\tAGENT\tSTATUS\tBEGAN\tTOOK\tSTEPS\tTOKENS\tTOOLS", func(w io.Writer, r readmodel.Run) {
		took := "-"
		if r.CompletedAt > 0 {
			took = (time.Duration(r.CompletedAt-r.StartedAt) * time.Millisecond).String()
		}
		terminal.Row(w, r.RunID, r.SessionID, r.AgentType, string(r.Status), terminal.Clock(r.StartedAt), took, r.StepCount, r.Used.Tokens.Total, r.Used.ToolCalls)
	})
}

type searchCmd struct {
	listFlags
	Words   []string `arg:"" help:"Words that must all be there; those of one quoted argument side by side."`
	Session string   `type:"session" help:"Only in this session and those below it."`
	User    string   `help:"Only in this user's sessions."`
	Agent   string   `help:"Only in sessions of this agent type."`
}

func (c searchCmd) Run(p *flags.Process) error {
	terms := make([]string, len(c.Words))
	for i, word := range c.Words {
		if terms[i] = word; strings.ContainsFunc(word, unicode.IsSpace) && !strings.Contains(word, `"`) {
			terms[i] = `"` + word + `"`
		}
	}
	q := given("q", strings.Join(terms, " "), "sessionId", c.Session, "userId", c.User, "agentType", c.Agent)
	return list(p, c.listFlags, "/search", q, "SESSION\tSEQUENCE\tTIME\tWHAT\tTEXT", func(w io.Writer, h readmodel.Hit) {
		what := string(h.Role)
		if h.Kind != readmodel.HitMessage {
			what = string(h.Kind) + " " + h.ToolName
		}
		terminal.Row(w, h.SessionID, h.Sequence, terminal.Clock(h.Timestamp), what, h.Snippet)
	})
}

type parkedCmd struct {
	listFlags
	Session string `type:"session" help:"Only of this root's tree."`
}

func (c parkedCmd) Run(p *flags.Process) error {
	return list(p, c.listFlags, "/parked", given("sessionId", c.Session), "SESSION\tSEQUENCE\tTYPE\tSTUCK\tREASON", func(w io.Writer, k readmodel.Parked) {
		terminal.Row(w, k.SessionID, k.Sequence, k.Type, k.Stuck, k.Reason)
	})
}

// list shows a page of a listing, a line each.
func list[T any](p *flags.Process, f listFlags, path string, q url.Values, header string, line func(io.Writer, T)) error {
	q.Set("limit", strconv.Itoa(f.Limit))
	q.Set("offset", strconv.Itoa(f.Offset))
	return show(p, f.Flags, path, q, func(w io.Writer, page api.Listing[T]) {
		fmt.Fprintln(w, header)
		for _, item := range page.Items {
			line(w, item)
		}
	}, func(page api.Listing[T]) {
		source.NoteMore(p.Stderr, page.Page, f.Offset)
		source.NoteFresh(p.Stderr, page.Fresh)
	})
}

// show prints an answer, as it is or as a table, to stdout, and notes to stderr.
func show[T any](p *flags.Process, f source.Flags, path string, q url.Values, table func(io.Writer, T), notes func(T)) error {
	return inWords(p, f, path, q, func(_ *source.Source, v T) error {
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		table(w, v)
		if err := w.Flush(); err != nil {
			return err
		}
		notes(v)
		return nil
	})
}

// inWords prints an answer, as it is or in words, for which more may be asked.
func inWords[T any](p *flags.Process, f source.Flags, path string, q url.Values, words func(*source.Source, T) error) error {
	s, err := f.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := s.Get(p.Ctx, path, q)
	if err != nil {
		return err
	}
	return source.Show(p, f.JSON, answer, func(v T) error { return words(s, v) })
}

// given returns the parameters, names and values in turn, that are not empty.
func given(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
