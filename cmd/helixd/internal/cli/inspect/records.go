package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/client"
)

type recordsCmd struct {
	source.Flags
	Session string   `arg:"" help:"Session id; SESSION@N: only the record N; SESSION@A..B: only records after A, up to B."`
	From    uint64   `help:"Only records after this sequence."`
	To      *uint64  `help:"Only records up to this sequence." placeholder:"N"`
	Dead    bool     `help:"Also records that were truncated."`
	Kind    string   `help:"Only records of this kind: chunk or fact."`
	Type    []string `help:"Only records of this type; can be given several times."`
	Agent   string   `help:"Only records of this session of the tree: the session itself, or one of its sub-agents'."`
	RunID   string   `name:"run" help:"Only records of this run."`
	Call    string   `help:"Only records of this tool call's execution."`
	Follow  bool     `help:"Go on with what comes, until it is stopped; records that are truncated later were shown."`
}

func (c recordsCmd) Run(p *flags.Process) error {
	only, err := source.StretchOr(c.Session, c.From, c.To)
	if err != nil {
		return err
	}
	c.Session, c.From, c.To = only.Session, only.From, only.To
	if only.Point {
		c.From, c.To = max(only.From, 1)-1, &only.From
	}
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	err = c.print(p, s)
	if c.Follow && p.Ctx.Err() != nil {
		return nil // there is no other end
	}
	return err
}

func (c recordsCmd) query() url.Values {
	q := given("kind", c.Kind, "agent", c.Agent, "run", c.RunID, "call", c.Call)
	q.Set("from", strconv.FormatUint(c.From, 10))
	if c.To != nil {
		q.Set("to", strconv.FormatUint(*c.To, 10))
	}
	if c.Dead {
		q.Set("dead", "1")
	}
	if c.Follow {
		q.Set("follow", "1")
	}
	if len(c.Type) > 0 {
		q["type"] = c.Type
	}
	return q
}

// recordsOf requests records of a session. It refuses an answer whose end can't be told from
// a lost connection, unless there is no end.
func recordsOf(ctx context.Context, s *source.Source, session string, q url.Values) (*remotehttp.Response, error) {
	answer, err := s.Get(ctx, source.Session(session, "/records"), q)
	if err == nil && !answer.Framed() && !q.Has("follow") {
		answer.Close()
		err = fmt.Errorf("%w: neither a length nor an end is given, as by a proxy of HTTP/1.0", client.ErrMalformed)
	}
	return answer, err
}

// print shows a record a line.
func (c recordsCmd) print(p *flags.Process, s *source.Source) error {
	answer, err := recordsOf(p.Ctx, s, c.Session, c.query())
	if err != nil {
		return err
	}
	defer answer.Close()
	if c.JSON && !c.Follow {
		return terminal.PrintJSON(p.Stdout, answer)
	}
	at := c.From
	for line, err := range answer.Lines(source.MaxLine) {
		if err != nil && !c.Follow {
			return err
		}
		if err != nil {
			break
		}
		if len(line) == 0 {
			continue // a heartbeat
		}
		var r eventlog.Record
		if err := json.Unmarshal(line, &r); err != nil {
			return err
		}
		at = r.Sequence
		if c.JSON {
			_, err = fmt.Fprintf(terminal.JSON(p.Stdout), "%s\n", line)
		} else {
			_, err = fmt.Fprintln(p.Stdout, terminal.RecordLine(r.Sequence, string(r.Kind), r.Payload))
		}
		if err != nil {
			return err
		}
	}
	if c.Follow {
		return fmt.Errorf("the connection was lost; resume with --from %d", at)
	}
	return nil
}
