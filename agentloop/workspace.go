package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// AgentWorkspace gives an agent files, and maybe commands: each of its sessions
// has a workspace of its own, which its model uses by the tools
// workspace_{operation} (facts 9). See package workspace.
type AgentWorkspace struct {
	// Name is what it is called, [a-zA-Z0-9_-]{1,64}; empty:
	// DefaultWorkspaceName.
	Name string
	// Provider is the kind, one of the loop's [Options.Workspaces].
	Provider string
	// Capabilities are what the model may use of what the provider offers; nil:
	// fs.
	Capabilities []eventlog.WorkspaceCapability
	// Approve are the operations that a person must approve each time, as
	// delete_file or run.
	Approve []string
	// HostNetwork gives commands the machine's network, as far as the provider
	// can keep it from them; default false.
	HostNetwork bool
}

// DefaultWorkspaceName is how a workspace is called that has no other name.
const DefaultWorkspaceName = "files"

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
		t := Tool{
			Name: projector.WorkspaceToolPrefix + op.Name, Description: op.Description, InputSchema: op.InputSchema,
			Execute: func(ctx context.Context, c *Call, args json.RawMessage) (any, error) {
				return c.r.inWorkspace(ctx, c, op, args)
			},
		}
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

// WorkspaceWiringError tells that an agent's workspace is of a kind that the
// loop has no provider of (document 004, WORKSPACE_WIRING).
type WorkspaceWiringError struct {
	Agent    string
	Provider string
	Known    []string // kinds that there are
}

func (e *WorkspaceWiringError) Error() string {
	there := "there are none"
	if len(e.Known) > 0 {
		there = "there are: " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("agentloop: WORKSPACE_WIRING: agent %s: there is no provider %q of workspaces; %s", e.Agent, e.Provider, there)
}

// WorkspaceFailedError tells that an agent wants more of a workspace than its
// provider offers (facts 9).
type WorkspaceFailedError struct {
	Agent    string
	Provider string
	Missing  []eventlog.WorkspaceCapability
}

func (e *WorkspaceFailedError) Error() string {
	missing := make([]string, len(e.Missing))
	for i, c := range e.Missing {
		missing[i] = string(c)
	}
	return fmt.Sprintf("agentloop: agent %s: the provider %s of workspaces does not offer %s", e.Agent, e.Provider, strings.Join(missing, ", "))
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
func (p providers) check(set *agentSet) error {
	for _, d := range set.defs {
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

// unsaved reports whether files are to be kept before the session's step
// becomes final, or its run rests: a rollback or a fork to there brings them
// along.
func unsaved(s *projector.Session) bool {
	w := s.Workspace
	return w != nil && w.Dirty && !w.Stale && w.Status == projector.WorkspaceOpen &&
		slices.Contains(w.Capabilities, eventlog.WorkspaceSnapshot)
}
