package plan

import (
	"fmt"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

var workspaceCapabilities = []eventlog.WorkspaceCapability{
	eventlog.WorkspaceFS, eventlog.WorkspaceShell, eventlog.WorkspaceCode, eventlog.WorkspaceSnapshot,
}

// addWorkspace gives an agent the tools of its workspace.
func (d *Agent) addWorkspace(w agentloop.AgentWorkspace) error {
	if w.Name == "" {
		w.Name = agentloop.DefaultWorkspaceName
	}
	if w.Capabilities == nil {
		w.Capabilities = []eventlog.WorkspaceCapability{eventlog.WorkspaceFS}
	}
	switch {
	case !namePattern.MatchString(w.Name):
		return fmt.Errorf("workspace %q: name must match %s", w.Name, namePattern)
	case w.Provider == "":
		return fmt.Errorf("workspace %s: no provider", w.Name)
	}
	for _, c := range w.Capabilities {
		if !slices.Contains(workspaceCapabilities, c) {
			return fmt.Errorf("workspace %s: there is no capability %q", w.Name, c)
		}
	}
	ops := workspace.Ops(w.Capabilities)
	for _, name := range w.Approve {
		if !slices.ContainsFunc(ops, func(o workspace.Op) bool { return o.Name == name }) {
			return fmt.Errorf("workspace %s: approve: its capabilities have no operation %q", w.Name, name)
		}
	}
	for _, op := range ops {
		if w.HostNetwork {
			op = op.OnHostNetwork()
		}
		t := Tool{Op: &op, Tool: agentloop.Tool{
			Name: projector.WorkspaceToolPrefix + op.Name, Description: op.Description, InputSchema: op.InputSchema,
		}}
		if slices.Contains(w.Approve, op.Name) {
			t.RequireApproval = agentloop.AlwaysApprove
		}
		if err := d.addTool(t); err != nil {
			return err
		}
	}
	d.Workspace = &w
	return nil
}

// Providers are the loop's providers of workspaces, by kind.
type Providers map[string]workspace.Provider

func ProvidersOf(list []workspace.Provider) (Providers, error) {
	all := Providers{}
	for _, p := range list {
		if all[p.ID()] != nil {
			return nil, fmt.Errorf("agentloop: workspaces: there are two providers %q", p.ID())
		}
		all[p.ID()] = p
	}
	return all, nil
}

func (p Providers) Kinds() []string {
	var kinds []string
	for kind := range p {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// Check refuses agents whose workspaces nobody can make.
func (p Providers) Check(agents map[string]*Agent) error {
	for _, d := range agents {
		if d.Workspace == nil {
			continue
		}
		provider := p[d.Workspace.Provider]
		if provider == nil {
			return &agentloop.WorkspaceWiringError{Agent: d.Name, Provider: d.Workspace.Provider, Known: p.Kinds()}
		}
		offered := provider.Capabilities()
		missing := slices.DeleteFunc(slices.Clone(d.Workspace.Capabilities), func(c eventlog.WorkspaceCapability) bool {
			return slices.Contains(offered, c)
		})
		if len(missing) > 0 {
			return &agentloop.WorkspaceFailedError{Agent: d.Name, Provider: d.Workspace.Provider, Missing: missing}
		}
	}
	return nil
}
