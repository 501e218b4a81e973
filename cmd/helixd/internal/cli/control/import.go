package control

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi/api"
)

type importCmd struct {
	source.ServerFlags
	File    string `arg:"" optional:"" default:"-" help:"What export has written; - is the standard input."`
	JSON    bool   `help:"Print JSON."`
	Session string `type:"session" help:"Id of the new session; it must be the exported one's, which is also the default."`
}

// Run makes a session of the records, and prints what is there then. After a
// break it can be run again: it continues after what is there.
func (c importCmd) Run(p *flags.Process) error {
	in, err := p.Open(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	shown := terminal.NewProgress(p.Stderr, "import", terminal.Size(in), terminal.Bytes)
	defer shown.Close()
	first, err := firstRecord(bufio.NewReader(shown.Reader(in)))
	if err != nil {
		return err
	}
	if c.Session != "" && c.Session != first.session {
		return fmt.Errorf("these are records of session %q: a session is imported under its own id only, since its records contain it too", first.session)
	}
	s, err := c.OpenAs(p.Ctx, jetstream.Options{Existing: true})
	if err != nil {
		return err
	}
	defer s.Close()
	done, err := s.Import(p.Ctx, first.session, func() (io.ReadCloser, error) { return io.NopCloser(first.all), nil })
	if err != nil {
		return source.Explained(err)
	}
	shown.Close()
	words := fmt.Sprintf("%s: %s, of which %d are new: sequences %d to %d", terminal.Printable(done.SessionID),
		terminal.Count(done.Records, "record"), done.Appended, done.FirstSequence, done.LastSequence)
	return terminal.Result(p.Stdout, c.JSON, done, words)
}

// input is an export whose first line was looked at.
type input struct {
	session string
	all     io.Reader
}

// firstRecord says whose records in holds: the first one's agent is the
// session at the root of its tree.
func firstRecord(in *bufio.Reader) (input, error) {
	var read []byte
	for {
		line, err := in.ReadSlice('\n')
		read = append(read, line...)
		switch {
		case len(read) > api.MaxImportLine:
			return input{}, errors.New("the first record is too long")
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return input{}, err
		}
		if text := bytes.TrimSpace(read); len(text) > 0 {
			r, err := eventlog.ParseRecord(text)
			if err != nil {
				return input{}, fmt.Errorf("the first record is not what export writes: %w", err)
			}
			return input{r.Agent, io.MultiReader(bytes.NewReader(read), in)}, nil
		}
		if err != nil {
			return input{}, errors.New("there are no records")
		}
	}
}
