package agentloop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
)

// A fork of a session whose files were removed, as a sweep does, begins without:
// its model is told, and goes on.
func TestAForkOfRemovedFiles(t *testing.T) {
	p, err := local.New(t.TempDir(), nil)
	require.NoError(t, err)
	agent := coding(
		scripted.Turn{ToolCalls: calls("a", "workspace_write_file", `{"path":"a","content":"1"}`)},
		scripted.Turn{ToolCalls: calls("b", "workspace_read_file", `{"path":"a"}`)},
		scripted.Turn{ToolCalls: calls("c", "workspace_write_file", `{"path":"c","content":"2"}`)},
		scripted.Turn{Text: "Done."},
	)
	agent.Workspace = &agentloop.AgentWorkspace{Provider: local.ID, Capabilities: []eventlog.WorkspaceCapability{eventlog.WorkspaceFS}}
	log := memory.New()
	loop, err := agentloop.New(log, []agentloop.Agent{agent}, &agentloop.Options{
		RetryDelay: time.Millisecond, Workspaces: []workspace.Provider{p},
	})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	g := &rig{t: t, log: log, loop: loop}
	g.start("s", "coder", "go")
	first := g.ended("s").Checkpoints[0].ID
	_, err = p.Remove(t.Context(), "s")
	require.NoError(t, err)
	_, err = loop.Fork(t.Context(), agentloop.ForkRequest{
		FromSessionID: "s", NewSessionID: "f", At: agentloop.Target{CheckpointID: first}, Run: true,
	})
	require.NoError(t, err)
	fork := toolResults(g.ended("f"))
	require.Equal(t, "the files of the workspace are lost: it is empty now", fork["b"])
	require.Equal(t, `{"path":"c","size":1}`, fork["c"])
}
