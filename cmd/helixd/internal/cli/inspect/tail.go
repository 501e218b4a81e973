package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/client"
)

// streamFlags are of the commands that show a stream.
type streamFlags struct {
	source.Flags
	terminal.StreamFlags
}

type tailCmd struct {
	streamFlags
	Session string `arg:"" help:"Session id, or SESSION@N: only chunks after sequence N."`
	From    uint64 `help:"Only chunks after this sequence."`
}

func (c tailCmd) Run(p *flags.Process) error {
	after, err := source.StretchOr(c.Session, c.From, nil)
	if err != nil {
		return err
	}
	if after.To != nil {
		return flags.Misused(fmt.Errorf("%s: tail continues to the end; helixd replay and records show a range", c.Session))
	}
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := stream(p.Ctx, s, "/sse", url.Values{"sessionId": {after.Session}, "fromSequence": {strconv.FormatUint(after.From, 10)}})
	if err != nil {
		return err
	}
	defer answer.Close()
	return c.tell(p, answer, after.Session, after.From, resume)
}

// stream opens a stream of events.
func stream(ctx context.Context, s *source.Source, path string, q url.Values) (*remotehttp.Response, error) {
	return s.Send(ctx, remotehttp.Request{Method: http.MethodGet, Route: path, Query: q, Accept: remotehttp.EventStream})
}

// resume says how a stream continues after a sequence.
const resume = "resume with --from"

// tell prints the stream after a sequence until its last event. If the connection is lost,
// the error says how the stream continues, as resume does.
func (f streamFlags) tell(p *flags.Process, answer *remotehttp.Response, session string, at uint64, how string) error {
	show, done := f.Shown(p.Stdout, f.JSON, session, terminal.NewTranscript)
	defer done()
	for raw, err := range answer.RawEvents() {
		if errors.Is(err, client.ErrTooLarge) {
			return err
		}
		if err != nil {
			break // the connection is lost
		}
		e := terminal.Event{Raw: raw.Data}
		if err := json.Unmarshal(e.Raw, &e); err != nil {
			return fmt.Errorf("an event is not JSON: %w", err)
		}
		if err := show(e); err != nil || e.Type != "chunk" {
			return err
		}
		at = e.Sequence
	}
	if p.Ctx.Err() != nil {
		return p.Ctx.Err()
	}
	return fmt.Errorf("the connection was lost; %s %d", how, at)
}
