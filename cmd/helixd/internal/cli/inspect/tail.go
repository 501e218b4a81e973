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

// displayFlags say how a stream is shown.
type displayFlags struct {
	source.Flags
	terminal.ColorFlags
	Lines bool `help:"One chunk a line, with all that it holds."`
}

type tailCmd struct {
	displayFlags
	Session string `arg:"" help:"Session id."`
	From    uint64 `help:"Only chunks after this sequence."`
}

func (c tailCmd) Run(p *flags.Process) error {
	s, err := c.Open(p.Ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := stream(p.Ctx, s, "/sse", url.Values{"sessionId": {c.Session}, "fromSequence": {strconv.FormatUint(c.From, 10)}})
	if err != nil {
		return err
	}
	defer answer.Close()
	return c.tell(p, answer, c.Session)
}

// stream opens a stream of events.
func stream(ctx context.Context, s *source.Source, path string, q url.Values) (*remotehttp.Response, error) {
	return s.Send(ctx, remotehttp.Request{Method: http.MethodGet, Route: path, Query: q, Accept: remotehttp.EventStream})
}

// tell prints a stream until its last event.
func (f displayFlags) tell(p *flags.Process, answer *remotehttp.Response, session string) error {
	show, done := f.shown(p, session)
	defer done()
	var at uint64
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
	return fmt.Errorf("the connection was lost; resume with --from %d", at)
}

// shown returns what shows an event, and what is to be called when no more come.
func (f displayFlags) shown(p *flags.Process, session string) (show func(terminal.Event) error, done func()) {
	switch {
	case f.JSON:
		w := terminal.JSON(p.Stdout)
		return func(e terminal.Event) error {
			_, err := w.Write(append(e.Raw, '\n'))
			return err
		}, func() {}
	case f.Lines:
		return func(e terminal.Event) error {
			_, err := fmt.Fprintln(p.Stdout, e.Line())
			return err
		}, func() {}
	}
	t := terminal.NewTranscript(p.Stdout, f.Paint(p.Stdout), session)
	return t.Show, t.Close
}
