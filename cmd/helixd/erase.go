package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/helixd/helixd/httpapi"
)

// daemonFlags say which daemon a command talks to.
type daemonFlags struct {
	Server string `help:"URL of a daemon." default:"http://127.0.0.1:8080" env:"HELIX_SERVER"`
	Token  string `help:"Bearer token for the daemon." env:"HELIX_TOKEN"`
}

func (f daemonFlags) source() *source {
	return &source{client: http.DefaultClient, base: strings.TrimSuffix(f.Server, "/"), token: f.Token, close: func() {}}
}

type eraseCmd struct {
	daemonFlags
	Session string `arg:"" help:"Session id."`
	Yes     bool   `help:"Really: nothing can bring the session back." required:""`
	Wait    bool   `help:"Ask again until no byte is left." default:"true" negatable:""`
}

// erasePause is the time between two requests for the same erasure.
const erasePause = time.Second

// Run erases a session and prints what the daemon says of it. If it knows
// nothing of the session any more that is what it has said before: of bytes that
// may be left where it can't look it can't tell more.
func (c eraseCmd) Run(p *process) error {
	var done httpapi.Erased
	for {
		body, err := c.source().do(p.ctx, http.MethodDelete, "/sessions/"+escapeID(c.Session), nil, nil)
		if r, is := errors.AsType[refusal](err); is && r.code == string(httpapi.CodeNotFound) && done.Pending {
			return json.NewEncoder(p.stdout).Encode(done)
		}
		if err != nil {
			return err
		}
		err = json.NewDecoder(body).Decode(&done)
		body.Close()
		if err != nil {
			return fmt.Errorf("the daemon's answer is no JSON: %w", err)
		}
		if !done.Pending || !c.Wait {
			return json.NewEncoder(p.stdout).Encode(done)
		}
		select {
		case <-time.After(erasePause):
		case <-p.ctx.Done():
			return p.ctx.Err()
		}
	}
}
