package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// TestWorkspace: what there is of a session's workspace, and that there is none.
func TestWorkspace(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), []agentloop.Agent{coder("memory"), coder("broken")})
	a.append("a/b", created("a/b"))
	for _, target := range []string{"/workspace", "/workspaces"} {
		got := a.get(target + "?sessionId=a%2Fb")
		require.Equal(t, 200, got.status)
		require.Equal(t, `{"workspace":null}`, got.body)
		a.get(target+"?sessionId=nobody").failed(t, 404, api.CodeNotFound)
		a.get(target).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, "GET, HEAD", a.post(target, "{}").header.Get("Allow"))
	}
	for kind, want := range map[string]api.Workspace{
		"memory": {Status: projector.WorkspaceOpen, Capabilities: []eventlog.WorkspaceCapability{eventlog.WorkspaceFS}},
		"broken": {Status: projector.WorkspaceBroken, Capabilities: []eventlog.WorkspaceCapability{}, Error: "no room"},
	} {
		a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"%s-coder","message":"go"}`, kind, kind))
		a.wait(kind)
		var got api.WorkspaceAnswer
		a.get("/workspace?sessionId="+kind).decode(t, &got)
		w := *got.Workspace
		require.Equal(t, w.Status == projector.WorkspaceOpen, w.OpenedAt > 0 && w.LastUsedAt >= w.OpenedAt && w.Ref != nil)
		w.OpenedAt, w.LastUsedAt, w.Ref = 0, 0, nil
		want.Name, want.ProviderID = "files", kind
		require.Equal(t, want, w)
	}
}

// A fork that needs a workspace of a kind that this node has not is refused.
func TestForkWithoutTheWorkspacesProvider(t *testing.T) {
	log := memory.New()
	a := newAPIOn(t, log, nil)
	fact := func(f eventlog.Fact) eventlog.Entry {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{})
		require.NoError(t, err)
		return e
	}
	a.append("s", created("s"),
		fact(&eventlog.WorkspaceOpened{Name: "files", ProviderID: "moon", Ref: []byte("{}"), FactBase: factBase("s")}),
		fact(&eventlog.WorkspaceSaved{Snapshot: []byte("{}"), FactBase: factBase("s")}))
	a.post("/sessions/s/fork", `{"sessionId":"f"}`).failed(t, 500, api.CodeWorkspaceWiring)
	a.get("/status?sessionId=f").failed(t, 404, api.CodeNotFound)
}
