package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

var workspaceCapabilities = []fact.WorkspaceCapability{
	fact.WorkspaceFS, fact.WorkspaceShell, fact.WorkspaceCode, fact.WorkspaceSnapshot,
}

// addWorkspace gives an agent the tools of its workspace.
func (d *Agent) addWorkspace(w agentloop.Workspace) {
	w.Name = cmp.Or(w.Name, agentloop.DefaultWorkspaceName)
	if w.Capabilities == nil {
		w.Capabilities = []fact.WorkspaceCapability{fact.WorkspaceFS}
	}
	if !namePattern.MatchString(w.Name) {
		d.refuse("workspace.name", nameRule)
	}
	if w.Provider == "" {
		d.refuse("workspace.provider", "must not be empty")
	}
	for i, c := range w.Capabilities {
		if !slices.Contains(workspaceCapabilities, c) {
			d.refuse(fmt.Sprintf("workspace.capabilities[%d]", i), "must be fs, shell, code or snapshot")
		}
	}
	ops := workspace.Ops(w.Capabilities)
	for i, name := range w.Approve {
		if !slices.ContainsFunc(ops, func(o workspace.Op) bool { return o.Name == name }) {
			d.refuse(fmt.Sprintf("workspace.approve[%d]", i), "is no operation of its capabilities")
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
		d.addTool(t)
	}
	d.Workspace = &w
}

// Providers are the loop's providers of workspaces, by kind.
type Providers map[string]workspace.Provider

// ProvidersOf fails if two providers are of one kind.
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

// Kinds returns the kinds, sorted.
func (p Providers) Kinds() []string { return slices.Sorted(maps.Keys(p)) }

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
		missing := slices.DeleteFunc(slices.Clone(d.Workspace.Capabilities), func(c fact.WorkspaceCapability) bool {
			return slices.Contains(offered, c)
		})
		if len(missing) > 0 {
			return &agentloop.WorkspaceFailedError{Agent: d.Name, Provider: d.Workspace.Provider, Missing: missing}
		}
	}
	return nil
}
