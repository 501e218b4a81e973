package control

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
)

// watchFlags are of the commands that show a run.
type watchFlags struct {
	source.DaemonFlags
	terminal.StreamFlags
	JSON bool `help:"Print JSON."`
}

// followFlags are of the commands after which a run continues.
type followFlags struct {
	watchFlags
	Follow bool `short:"f" help:"Show the run until it ends or waits; the exit code is then as of helixd run."`
}

// done says what a command has done and, with --follow, shows the run from after on.
func (f followFlags) done(p *flags.Process, s *source.Source, session string, after uint64, answer any, words string) error {
	if err := terminal.Result(p.Stdout, f.JSON, answer, terminal.Printable(words)); err != nil || !f.Follow {
		return err
	}
	end, _, err := f.watch(p, s, session, after)
	if err != nil {
		return err
	}
	return outcome(p, s, session, end)
}

// head is the sequence after which --follow shows a session.
func (f followFlags) head(p *flags.Process, s *source.Source, session string) (uint64, error) {
	if !f.Follow {
		return 0, nil
	}
	status, err := s.Status(p.Ctx, session)
	return status.LatestSequence, source.Explained(err)
}

// watch shows what comes after a sequence until the run ends or waits, across connections
// that break, with what the user has said meanwhile. It returns the last event, and the
// sequence of the last chunk.
func (f watchFlags) watch(p *flags.Process, s *source.Source, session string, after uint64, said ...projector.Message) (end client.Event, seen uint64, err error) {
	show, done := f.Shown(p.Stdout, f.JSON, session, terminal.NewTalk(said))
	defer done()
	seen = after
	for e, err := range s.Stream(p.Ctx, session, after) {
		if err != nil {
			if p.Ctx.Err() != nil {
				done()
				fmt.Fprintf(p.Stderr, "\nThe run continues. See it with helixd tail %[1]s, stop it with helixd interrupt %[1]s.\n", source.Argument(session))
			}
			return nil, seen, source.Explained(err)
		}
		if chunk, ok := e.(client.ChunkEvent); ok {
			seen = chunk.Sequence
		}
		if err := show(shown(e)); err != nil {
			return nil, seen, err
		}
		if remote.IsLast(e) {
			return e, seen, nil
		}
	}
	return nil, seen, errors.New("the stream has no end")
}

// shown is an event as terminals show it, with its JSON as of GET /sse.
func shown(e client.Event) (out terminal.Event) {
	switch e := e.(type) {
	case client.ChunkEvent:
		out = terminal.Event{Type: "chunk", Chunk: e.Raw, Sequence: e.Sequence}
		out.Raw, _ = json.Marshal(struct {
			Type     string          `json:"type"`
			Chunk    json.RawMessage `json:"chunk"`
			Sequence uint64          `json:"sequence"`
		}{out.Type, out.Chunk, out.Sequence})
	case client.ErrorEvent:
		out = terminal.Event{Type: "error", Error: e.Error}
		out.Raw, _ = json.Marshal(api.ErrorEvent{Type: out.Type, Error: e.Error, Recoverable: e.Recoverable})
	case client.EndEvent:
		out = terminal.Event{Type: "end", Status: e.Status}
		out.Raw, _ = json.Marshal(api.EndEvent{Type: out.Type, Output: e.Output, State: e.State, Status: e.Status})
	}
	return out
}

// outcome returns nil if a run has completed, or the error whose exit code tells how it
// has ended. Of a run that waits it says what to do.
func outcome(p *flags.Process, s *source.Source, session string, end client.Event) error {
	switch e := end.(type) {
	case client.ErrorEvent:
		return errors.New("the run has failed")
	case client.EndEvent:
		switch e.Status {
		case remote.StatusPaused:
			calls, err := pending(p, s, session)
			if err != nil {
				return err
			}
			for _, c := range calls {
				fmt.Fprintln(p.Stderr, advice(session, c, len(calls) > 1))
			}
			return flags.ErrWaits
		case remote.StatusInterrupted:
			fmt.Fprintf(p.Stderr, "Continue it with helixd resume %s.\n", source.Argument(session))
			return flags.ErrStopped
		}
	}
	return nil
}

// advice says how a call that waits is answered.
func advice(session string, c api.PendingToolCall, several bool) string {
	which := source.Argument(session)
	if several {
		which += " --call " + terminal.Word(c.ToolCallID)
	}
	call := terminal.Spaced(c.ToolName, string(c.Input))
	if isApproval(c) {
		return fmt.Sprintf("%s waits for approval: helixd approve %[2]s, or helixd deny %[2]s.", call, which)
	}
	return fmt.Sprintf("%s waits for its result: helixd answer %s 'JSON'.", call, which)
}
