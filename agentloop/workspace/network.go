package workspace

import (
	"context"
	"encoding/json"
)

// OnHostNetwork returns the operation with the machine's network for the
// commands that it runs.
func (o Op) OnHostNetwork() Op {
	do := o.Do
	o.Do = func(ctx context.Context, w Workspace, args json.RawMessage) (any, error) {
		return do(ctx, networked{w}, args)
	}
	return o
}

// networked is a workspace whose commands have the machine's network.
type networked struct{ Workspace }

func (w networked) Shell() Shell {
	if s := w.Workspace.Shell(); s != nil {
		return networkedShell{s}
	}
	return nil
}

type networkedShell struct{ Shell }

func (s networkedShell) Run(ctx context.Context, c Command) (Outcome, error) {
	c.HostNetwork = true
	return s.Shell.Run(ctx, c)
}
