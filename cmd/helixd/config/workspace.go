package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/fact"
)

// Kinds of workspaces.
const (
	WorkspaceMemory  = "memory"  // files that end with the process
	WorkspaceLocal   = "local"   // a folder of this node, and commands
	WorkspaceObjects = "objects" // files in the log's JetStream
)

// Workspace gives an agent's sessions files, and maybe commands.
type Workspace struct {
	Provider string `json:"provider"` // memory, local or objects
	// Capabilities are fs, shell, code and snapshot, as far as the provider
	// offers them; default fs.
	Capabilities []string `json:"capabilities"`
	Name         string   `json:"name"` // [a-zA-Z0-9_-]{1,64}; default files
	// Approve are the operations that a person must approve each time, such as
	// run or delete_file; default none.
	Approve []string `json:"approve"`
	// Network is what the commands of local workspaces can reach: none, the default,
	// is only their own processes; host is everything that the machine reaches,
	// including its loopback addresses.
	Network string `json:"network"`
}

// Networks of commands.
const (
	NetworkNone = "none"
	NetworkHost = "host"
)

// EventCapabilities are Capabilities as the log has them; nil: none are named.
func (w Workspace) EventCapabilities() []fact.WorkspaceCapability {
	var all []fact.WorkspaceCapability
	for _, c := range w.Capabilities {
		all = append(all, fact.WorkspaceCapability(c))
	}
	return all
}

// Space returns the agent's workspace, nil if it has none: Workspace, or the one
// entry of Workspaces.
func (a Agent) Space() *Workspace {
	if a.Workspace != nil {
		return a.Workspace
	}
	for name, w := range a.Workspaces {
		w.Name = name
		return &w
	}
	return nil
}

// workspaceOf is an agent's workspace as the engine takes it, nil if it has none.
func workspaceOf(a Agent) *agentloop.Workspace {
	w := a.Space()
	if w == nil {
		return nil
	}
	return &agentloop.Workspace{
		Name: w.Name, Provider: w.Provider, Capabilities: w.EventCapabilities(), Approve: w.Approve, HostNetwork: w.Network == NetworkHost,
	}
}

// Workspaces configures what the providers of workspaces may use.
type Workspaces struct {
	Local   LocalWorkspaces  `json:"local"`
	Objects ObjectWorkspaces `json:"objects"`
}

// LocalWorkspaces are folders of this node.
type LocalWorkspaces struct {
	// Dir is the folder of the workspaces, relative to the working directory. Empty:
	// workspaces in dataDir.
	Dir string `json:"dir"`
	// Timeout is how long a command may run, greater than 0; default 1m.
	Timeout time.Duration `json:"timeout"`
	// MaxProcesses is how many processes a command may have at once, at least
	// 1; default 64.
	MaxProcesses int `json:"maxProcesses"`
	// MaxBytes is how much the files of one workspace may have, greater than 0;
	// default 1GiB.
	MaxBytes Bytes `json:"maxBytes"`
	// MaxMemory is how much memory all processes of a command may have together,
	// greater than 0; default 2GiB. Shared memory counts for each process.
	MaxMemory Bytes `json:"maxMemory"`
	// RunAs is the user that commands run as, by name or number, if the daemon
	// is root. Empty: nobody (65534).
	RunAs string `json:"runAs"`
	// Unconfined is true to run commands even if the machine can't confine them: as
	// the daemon's user, which can read the daemon's secrets and end it. Default
	// false: then there is no shell.
	Unconfined bool `json:"unconfined"`
}

// ObjectWorkspaces are in the log's JetStream.
type ObjectWorkspaces struct {
	// MaxBytes is how much the files of one workspace may have, greater than 0;
	// default 1GiB.
	MaxBytes Bytes `json:"maxBytes"`
}

// Defaults of workspaces.
const (
	defaultCommandTimeout       = time.Minute
	defaultMaxProcesses         = 64
	defaultWorkspaceBytes Bytes = 1 << 30
	defaultCommandMemory  Bytes = 2 << 30
)

func (c *Config) setWorkspaceDefaults() {
	c.Workspaces.Local = LocalWorkspaces{
		Timeout: defaultCommandTimeout, MaxProcesses: defaultMaxProcesses, MaxBytes: defaultWorkspaceBytes,
		MaxMemory: defaultCommandMemory,
	}
	c.Workspaces.Objects.MaxBytes = defaultWorkspaceBytes
}

func (k *checker) checkWorkspaces() {
	l, o := k.config.Workspaces.Local, k.config.Workspaces.Objects
	k.require(!strings.ContainsAny(l.Dir, "\x00\n"), "workspaces.local.dir", "must be a folder's path")
	k.require(l.Timeout > 0, "workspaces.local.timeout", "must be greater than 0")
	k.require(l.MaxProcesses >= 1, "workspaces.local.maxProcesses", "must be at least 1")
	k.require(l.MaxBytes > 0, "workspaces.local.maxBytes", "must be greater than 0")
	k.require(l.MaxMemory > 0, "workspaces.local.maxMemory", "must be greater than 0")
	k.require(o.MaxBytes > 0, "workspaces.objects.maxBytes", "must be greater than 0")
}

// checkSpaces looks at an agent's workspace.
func (k *checker) checkSpaces(a Agent, path string) {
	k.require(len(a.Workspaces) <= 1, path+".workspaces", "an agent has one workspace")
	k.require(a.Workspace == nil || a.Workspaces == nil, path+".workspaces", "is another name of workspace: give one of the two")
	for _, name := range slices.Sorted(maps.Keys(a.Workspaces)) {
		w, at := a.Workspaces[name], join(path, "workspaces", name)
		k.require(w.Name == "", at+".name", "the key is the name")
		k.checkSpace(w, at)
	}
	if w := a.Workspace; w != nil {
		k.checkSpace(*w, path+".workspace")
	}
}

func (k *checker) checkSpace(w Workspace, path string) {
	k.needed(slices.Contains([]string{WorkspaceMemory, WorkspaceLocal, WorkspaceObjects}, w.Provider), path+".provider",
		"must be memory, local or objects")
	k.require(w.Network == "" || w.Network == NetworkNone || w.Network == NetworkHost, path+".network", "must be none or host")
	k.require(w.Network != NetworkHost || w.Provider == WorkspaceLocal, path+".network", "is for provider local only")
	k.require(w.Capabilities == nil || len(w.Capabilities) > 0, path+".capabilities", "must not be empty")
}
