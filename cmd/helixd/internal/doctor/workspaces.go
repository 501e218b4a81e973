package doctor

import (
	"os"
	"slices"

	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/fact"
)

// workspaces reports what does not confine agents' commands on this machine, by
// commands that this process's user runs in their own folder.
func (d *exam) workspaces() {
	var networked []string
	shell := false
	for name, a := range d.config.Agents {
		w := a.Space()
		if w == nil || w.Provider != config.WorkspaceLocal || !slices.Contains(w.EventCapabilities(), fact.WorkspaceShell) {
			continue
		}
		shell = true
		if w.Network == config.NetworkHost {
			networked = append(networked, name)
		}
	}
	if !shell {
		return
	}
	p, err := triedWorkspaces(d.config.Workspaces.Local)
	if err != nil {
		d.Problem(checkWorkspaces, "workspaces.local", err.Error(), "correct workspaces.local")
		return
	}
	if err := p.ShellProblem(); err != nil {
		d.Problem(checkWorkspaces, "", err.Error(), "run helixd where user namespaces are allowed, such as by helixd-commands.conf, or as root; or take shell from the agents' capabilities")
		return
	}
	gaps := p.Gaps()
	for _, gap := range gaps {
		d.Warning(checkWorkspaces, "", gap, "run helixd on Linux 5.12 or later where user namespaces and seccomp are allowed, or run no commands that you do not trust")
	}
	slices.Sort(networked)
	for _, name := range networked {
		d.Warning(checkWorkspaces, "", "commands of the agent "+name+" reach the machine's network, and what listens on its loopback addresses",
			"remove network: host from the agent's workspace if its commands need no network")
	}
	if len(gaps)+len(networked) == 0 {
		d.OK(checkWorkspaces, "commands have no network, files and processes but their own, and few system calls")
	}
}

// triedWorkspaces tries commands in a folder that is removed again.
func triedWorkspaces(l config.LocalWorkspaces) (*local.Provider, error) {
	dir, err := os.MkdirTemp("", "helixd-doctor-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // commands may be another user's
		return nil, err
	}
	return local.New(dir, settings.LocalOptions(l))
}
