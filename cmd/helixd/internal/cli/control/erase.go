package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
)

type eraseCmd struct {
	source.DaemonFlags
	Session string `arg:"" type:"session" help:"Session id."`
	JSON    bool   `help:"Print JSON."`
	Yes     bool   `help:"Really: nothing can bring the session back." required:""`
	Wait    bool   `help:"Wait until no byte is left. The daemon continues in any case." default:"true" negatable:""`
}

// erasePause is the time between two requests for the same erasure.
const erasePause = time.Second

// Run erases a session and prints what the daemon says of it.
func (c eraseCmd) Run(p *flags.Process) error {
	said, daemon := "", c.Connect()
	shown := terminal.NewProgress(p.Stderr, "erase "+c.Session, 0, nil)
	defer shown.Close()
	done, err := untilErased(p.Ctx, c.Wait, func() (api.Erased, error) {
		return daemon.Erase(p.Ctx, c.Session)
	}, func(e api.Erased) bool { return e.Pending }, func(e api.Erased) bool {
		shown.Add(1)
		if e.Pending && e.WaitsFor != "" && e.WaitsFor != said {
			said = e.WaitsFor
			shown.Close()
			fmt.Fprintln(p.Stderr, "waiting for", terminal.Printable(said))
		}
		return e.Left == ""
	})
	if err != nil {
		return err
	}
	shown.Close()
	return terminal.Result(p.Stdout, c.JSON, done, erasedWords(done))
}

// erasedWords says how far an erasure is.
func erasedWords(e api.Erased) string {
	words := e.SessionID + " is erased"
	switch {
	case e.Pending && e.Left != "":
		words = e.SessionID + " is being erased: bytes are left: " + e.Left
	case e.Pending:
		words = e.SessionID + " is being erased: bytes may be left"
		if e.WaitsFor != "" {
			words += " until this is done: " + e.WaitsFor
		}
	}
	if len(e.Forks) > 0 {
		words += "; these forks keep what they took: " + strings.Join(e.Forks, ", ")
	}
	return terminal.Printable(words)
}

// untilErased asks for an erasure, until nothing is pending if it is to wait, and
// returns the daemon's answer. If the daemon does not know the erasure any more, it
// returns the previous answer: bytes that may be left are then in places which the daemon can't
// read.
//
// It waits only while waits says so.
func untilErased[T any](ctx context.Context, wait bool, ask func() (T, error), pending, waits func(T) bool) (done T, err error) {
	for {
		now, err := ask()
		if e, is := errors.AsType[*client.Error](err); is && e.Code == api.CodeNotFound && pending(done) {
			return done, nil
		}
		if err != nil {
			return done, source.Explained(err)
		}
		done = now
		if !pending(done) || !wait || !waits(done) {
			return done, nil
		}
		if eventlog.Sleep(ctx, erasePause) != nil {
			return done, ctx.Err()
		}
	}
}
