package agentloop

import (
	"fmt"
	"slices"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

var workspaceCapabilities = []eventlog.WorkspaceCapability{
	eventlog.WorkspaceFS, eventlog.WorkspaceShell, eventlog.WorkspaceCode, eventlog.WorkspaceSnapshot,
}

// addWorkspace gives an agent the tools of its workspace.
func (d *definition) addWorkspace(w AgentWorkspace) error {
	if w.Name == "" {
		w.Name = DefaultWorkspaceName
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
		t := tool{op: &op, Tool: Tool{
			Name: projector.WorkspaceToolPrefix + op.Name, Description: op.Description, InputSchema: op.InputSchema,
		}}
		if slices.Contains(w.Approve, op.Name) {
			t.RequireApproval = AlwaysApprove
		}
		if err := d.addTool(t); err != nil {
			return err
		}
	}
	d.Workspace = &w
	return nil
}

// providers are the loop's providers of workspaces, by kind.
type providers map[string]workspace.Provider

func providersOf(list []workspace.Provider) (providers, error) {
	all := providers{}
	for _, p := range list {
		if all[p.ID()] != nil {
			return nil, fmt.Errorf("agentloop: workspaces: there are two providers %q", p.ID())
		}
		all[p.ID()] = p
	}
	return all, nil
}

func (p providers) kinds() []string {
	var kinds []string
	for kind := range p {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return kinds
}

// check refuses agents whose workspaces nobody can make.
func (p providers) check(agents map[string]*definition) error {
	for _, d := range agents {
		if d.Workspace == nil {
			continue
		}
		provider := p[d.Workspace.Provider]
		if provider == nil {
			return &WorkspaceWiringError{Agent: d.Name, Provider: d.Workspace.Provider, Known: p.kinds()}
		}
		offered := provider.Capabilities()
		missing := slices.DeleteFunc(slices.Clone(d.Workspace.Capabilities), func(c eventlog.WorkspaceCapability) bool {
			return slices.Contains(offered, c)
		})
		if len(missing) > 0 {
			return &WorkspaceFailedError{Agent: d.Name, Provider: d.Workspace.Provider, Missing: missing}
		}
	}
	return nil
}
