//go:build !linux

package local

import (
	"context"
	"errors"

	"github.com/helixd/helixd/agentloop/workspace"
)

// probe says that commands are for Linux only: elsewhere nothing ends all that a
// command began.
func (p *Provider) probe() (isolated bool, problem error) {
	return false, errors.New("commands can be run on Linux only")
}

// Run implements workspace.Shell.
func (s *space) Run(context.Context, workspace.Command) (workspace.Outcome, error) {
	return workspace.Outcome{}, s.p.shell
}
