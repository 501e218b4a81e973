package main

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
)

// storyFlags say how a stream is shown.
type storyFlags struct {
	sourceFlags
	colorFlags
	Lines bool `help:"One chunk a line, with all that it holds."`
}

type tailCmd struct {
	storyFlags
	Session string `arg:"" help:"Session id."`
	From    uint64 `help:"Only chunks behind this sequence."`
}

func (c tailCmd) Run(p *process) error {
	s, err := c.open(p.ctx)
	if err != nil {
		return err
	}
	defer s.close()
	q := url.Values{"sessionId": {c.Session}, "fromSequence": {strconv.FormatUint(c.From, 10)}}
	body, err := s.get(p.ctx, "/sse?"+q.Encode(), http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return err
	}
	defer body.Close()
	return c.tell(p, body, c.Session)
}

// tell shows a stream until its last event.
func (f storyFlags) tell(p *process, body io.Reader, session string) error {
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
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	return fmt.Errorf("the connection was lost; go on with --from %d", at)
}

// shown returns what shows an event, and what is to be called when no more come.
func (f storyFlags) shown(p *process, session string) (show func(streamEvent) error, done func()) {
	switch {
	case f.JSON:
		w := jsonTo(p.stdout)
		return func(e streamEvent) error {
			_, err := w.Write(append(e.raw, '\n'))
			return err
		}, func() {}
	case f.Lines:
		return func(e streamEvent) error {
			_, err := fmt.Fprintln(p.stdout, e.line())
			return err
		}, func() {}
	}
	t := newTranscript(p.stdout, f.paint(p.stdout), session)
	return t.event, t.close
}

// events reads the events of a stream, until the connection ends or breaks.
func events(body io.Reader) iter.Seq2[streamEvent, error] {
	return func(yield func(streamEvent, error) bool) {
		in := lines(body)
		for in.Scan() {
			data, ok := strings.CutPrefix(in.Text(), "data: ")
			if !ok {
				continue
			}
			e := streamEvent{raw: []byte(data)}
			if err := json.Unmarshal(e.raw, &e); err != nil {
				yield(e, fmt.Errorf("an event is no JSON: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
		if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(streamEvent{}, err)
		}
	}
}
