package httpapi

import (
	"context"
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// folded is the state of a session at a sequence, with the record that gave
// its stream the status that it has: what an outside producer says at a
// stream's end is in no run.
type folded struct {
	projector.Tree
	turning eventlog.Record
}

// fold returns the state after the records with sequence <= to, at the head
// if to is 0. Errors: as eventlog.Log.Read.
func (s *Server) fold(ctx context.Context, session string, to uint64) (*folded, error) {
	f := new(folded)
	for r, err := range s.log.Read(ctx, session, 0, to) {
		if err != nil {
			return nil, err
		}
		before := f.StreamStatus
		projector.Apply(&f.Tree, r)
		if f.StreamStatus != before {
			f.turning = r
		}
	}
	return f, nil
}

// output returns the run's output, or what ended the stream gave as such.
func (f *folded) output() json.RawMessage {
	if fact, err := f.turning.Fact(); err == nil {
		if end, ok := fact.(*eventlog.StreamEnd); ok && len(end.FinalOutput) > 0 {
			return end.FinalOutput
		}
	}
	return f.Output
}

// failure returns why the run or the stream failed, or "".
func (f *folded) failure() string {
	if f.Error != nil {
		return f.Error.Message
	}
	if fact, err := f.turning.Fact(); err == nil {
		if failed, ok := fact.(*eventlog.StreamFailed); ok {
			return failed.Error
		}
	}
	return ""
}

// waiting returns "interrupted" or "paused" if the session waits to be
// resumed, else "".
func (f *folded) waiting() string {
	switch {
	case f.StreamStatus.Terminal():
		return ""
	case f.Status == projector.SessionInterrupted:
		return string(projector.SessionInterrupted)
	case f.Status == projector.SessionPaused, f.StreamStatus == eventlog.StreamWaiting:
		return string(projector.SessionPaused)
	}
	return ""
}
