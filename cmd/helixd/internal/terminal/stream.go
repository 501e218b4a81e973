package terminal

import (
	"fmt"
	"io"
)

// StreamFlags say how a stream is shown.
type StreamFlags struct {
	ColorFlags
	Lines bool `help:"One chunk a line, with all that it holds."`
}

// Shown returns what shows a session's events on w: as JSON, in a line, or by a transcript.
// done is to be called when no more events come.
func (f StreamFlags) Shown(w io.Writer, asJSON bool, session string, transcript func(io.Writer, Paint, string) *Transcript) (show func(Event) error, done func()) {
	switch {
	case asJSON:
		w := JSON(w)
		return func(e Event) error {
			_, err := w.Write(append(e.Raw, '\n'))
			return err
		}, func() {}
	case f.Lines:
		return func(e Event) error {
			_, err := fmt.Fprintln(w, e.Line())
			return err
		}, func() {}
	}
	t := transcript(w, f.Paint(w), session)
	return t.Show, t.Close
}
