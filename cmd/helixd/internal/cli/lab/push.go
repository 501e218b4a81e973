package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

// shownOn is the daemon on which a lab is shown, if there is one.
type shownOn struct {
	Server string `help:"URL of a daemon that gets the lab's sessions too: its debugger shows them, and its labels count." placeholder:"URL"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
	flags.Trust
}

func (s shownOn) connect() *source.Source {
	return source.DaemonFlags{Server: s.Server, Token: s.Token, Trust: s.Trust}.Connect()
}

// labels are those that people gave on the daemon.
func (s shownOn) labels(ctx context.Context, cohort string) (map[string]bool, error) {
	state, err := s.connect().State(ctx, lab.LabelsID(cohort))
	if notFound(err) {
		return map[string]bool{}, nil
	}
	if err != nil {
		return nil, source.Explained(err)
	}
	return lab.Labels(state.State.CustomState.Bytes())
}

// has reports whether the daemon has a session.
func (s shownOn) has(ctx context.Context, id string) (bool, error) {
	_, err := s.connect().State(ctx, id) // needs no other right than labels
	if notFound(err) {
		return false, nil
	}
	return err == nil, source.Explained(err)
}

func notFound(err error) bool {
	known, is := errors.AsType[*client.Error](err)
	return is && known.Code == api.CodeNotFound
}

// push stores a lab of a log on the daemon. Recorded sessions stay out: its agents could continue
// them.
func (s shownOn) push(ctx context.Context, log eventlog.Log, id string) error {
	ids, err := lab.Sessions(ctx, log, id)
	if err != nil {
		return err
	}
	to := s.connect()
	for _, session := range ids {
		_, err := to.Import(ctx, session, func() (io.ReadCloser, error) { return exported(ctx, log, session), nil })
		if err != nil {
			return fmt.Errorf("storing session %s on the daemon: %w", session, source.Explained(err))
		}
	}
	return nil
}

// exported reads the records of a session as lines of JSON.
func exported(ctx context.Context, log eventlog.Log, session string) io.ReadCloser {
	out, in := io.Pipe()
	go func() {
		lines := json.NewEncoder(in)
		for r, err := range log.Read(ctx, session, 0, 0) {
			if err == nil {
				err = lines.Encode(r)
			}
			if err != nil {
				in.CloseWithError(err)
				return
			}
		}
		in.Close()
	}()
	return out
}
