package config

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadWorkspaces(t *testing.T) {
	text, err := os.ReadFile("testdata/example.yaml")
	require.NoError(t, err)
	c, err := loadText(t, string(text), env{
		"HELIX_TOKEN": "t", "OPENAI_API_KEY": "k", "WEATHER_TOKEN": "w", "OTLP_TOKEN": "o", "GATEWAY": "g", "HELIX_WORKSPACES_LOCAL_MAX_PROCESSES": "16",
	})
	require.NoError(t, err)
	assert.Equal(t, LocalWorkspaces{Dir: "./files", Timeout: 30 * time.Second, MaxProcesses: 16, MaxBytes: 100 << 20, MaxMemory: 2 << 30, RunAs: "nobody", Unconfined: true}, c.Workspaces.Local)
	assert.Equal(t, ObjectWorkspaces{MaxBytes: 10 << 20}, c.Workspaces.Objects)
	assert.Equal(t, &Workspace{
		Provider: WorkspaceLocal, Name: "desk", Capabilities: []string{"fs", "shell"}, Approve: []string{"run", "delete_file"},
	}, c.Agents["researcher"].Space())
	assert.Equal(t, &Workspace{Provider: WorkspaceObjects, Name: "notes"}, c.Agents["writer"].Space(), "the older key, with one entry")
	assert.Nil(t, c.Agents["demo"].Space())

	c, err = loadText(t, "", nil)
	require.NoError(t, err)
	assert.Equal(t, Workspaces{
		Local:   LocalWorkspaces{Timeout: defaultCommandTimeout, MaxProcesses: defaultMaxProcesses, MaxBytes: defaultWorkspaceBytes, MaxMemory: defaultCommandMemory},
		Objects: ObjectWorkspaces{MaxBytes: defaultWorkspaceBytes},
	}, c.Workspaces)
}

func TestBadWorkspaces(t *testing.T) {
	agent := func(keys string) string {
		return "agents:\n  a:\n    model: {provider: openai, name: m, apiKey: k}\n    " + keys + "\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"kind", agent("workspace: {provider: moon}"), "helix.yaml:4: agents.a.workspace.provider: must be memory, local or objects"},
		{"no kind", agent("workspace: {capabilities: [fs]}"), "helix.yaml:4: agents.a.workspace.provider: must be memory, local or objects"},
		{"capability", agent("workspace: {provider: local, capabilities: [fs, gpu]}"), "helix.yaml:4: agents.a.workspace.capabilities[1]: must be fs, shell, code or snapshot"},
		{"no capability", agent("workspace: {provider: local, capabilities: []}"), "helix.yaml:4: agents.a.workspace.capabilities: must not be empty"},
		{"name", agent("workspace: {provider: local, name: a b}"), "helix.yaml:4: agents.a.workspace.name: the name must match [a-zA-Z0-9_-]{1,64}"},
		{"approval of nothing", agent("workspace: {provider: local, approve: [run]}"), "helix.yaml:4: agents.a.workspace.approve[0]: is no operation of its capabilities"},
		{"network", agent("workspace: {provider: local, network: some}"), "helix.yaml:4: agents.a.workspace.network: must be none or host"},
		{"network without commands", agent("workspace: {provider: objects, network: host}"), "helix.yaml:4: agents.a.workspace.network: is for provider local only"},
		{"two", agent("workspaces: {x: {provider: local}, y: {provider: local}}"), "helix.yaml:4: agents.a.workspaces: an agent has one workspace"},
		{"both keys", agent("workspaces: {x: {provider: local}}\n    workspace: {provider: local}"), "helix.yaml:4: agents.a.workspaces: is another name of workspace: give one of the two"},
		{"two names", agent("workspaces: {x: {provider: local, name: y}}"), "helix.yaml:4: agents.a.workspaces.x.name: the key is the name"},
		{"limits", "workspaces:\n  local: {timeout: 0, maxProcesses: 0, maxBytes: 0, maxMemory: 0}\n  objects: {maxBytes: 0}\n", "helix.yaml:2: workspaces.local.timeout: must be greater than 0\n" +
			"helix.yaml:2: workspaces.local.maxProcesses: must be at least 1\nhelix.yaml:2: workspaces.local.maxBytes: must be greater than 0\nhelix.yaml:2: workspaces.local.maxMemory: must be greater than 0\n" +
			"helix.yaml:3: workspaces.objects.maxBytes: must be greater than 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.text, nil)
			assert.EqualError(t, err, tt.want)
		})
	}
}
