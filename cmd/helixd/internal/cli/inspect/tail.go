package inspect

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
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
	q := url.Values{"sessionId": {c.Session}, "fromSequence": {strconv.FormatUint(c.From, 10)}}
	body, err := s.Get(p.Ctx, "/sse?"+q.Encode(), http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return err
	}
	defer body.Close()
	return c.tell(p, body, c.Session)
}

// tell shows a stream until its last event.
func (f displayFlags) tell(p *flags.Process, body io.Reader, session string) error {
	show, done := f.shown(p, session)
	defer done()
	var at uint64
	for e, err := range events(body) {
		if err == nil {
			err = show(e)
		}
		switch {
		case err != nil:
			return err
		case e.Type != "chunk":
			return nil
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

// events reads the events of a stream, until the connection ends or breaks.
func events(body io.Reader) iter.Seq2[terminal.Event, error] {
	return func(yield func(terminal.Event, error) bool) {
		in := source.Lines(body)
		for in.Scan() {
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			if !ok {
				continue
			}
			e := terminal.Event{Raw: []byte(data)}
			if err := json.Unmarshal(e.Raw, &e); err != nil {
				yield(e, fmt.Errorf("an event is not JSON: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(terminal.Event{}, err)
		}
	}
}
