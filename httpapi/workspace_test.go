package httpapi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
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
		"memory": {Status: projector.WorkspaceOpen, Capabilities: []fact.WorkspaceCapability{fact.WorkspaceFS}},
		"broken": {Status: projector.WorkspaceBroken, Capabilities: []fact.WorkspaceCapability{}, Error: "no room"},
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

// TestFiles: what is in a session's workspace, in pages, and what is refused.
func TestFiles(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), []agentloop.Agent{coder("memory"), coder("broken")})
	a.append("none", created("none"))
	const files = "/sessions/%s/files"
	require.Equal(t, `{"items":[],"total":0,"offset":0,"limit":50,"hasMore":false}`, a.get(fmt.Sprintf(files, "none")).body, "it has no workspace")
	a.get(fmt.Sprintf(files, "nobody")).failed(t, 404, api.CodeNotFound)
	a.post("/start", `{"sessionId":"memory","agentType":"memory-coder","message":"go"}`)
	a.wait("memory")
	var got api.FilesPage
	for _, folder := range []string{"", "?path=.", "?path=./"} {
		a.get(fmt.Sprintf(files, "memory")+folder).decode(t, &got)
		require.Equal(t, 1, got.Total, folder)
		require.Positive(t, got.Items[0].Modified)
		got.Items[0].Modified = 0
		require.Equal(t, []api.File{{Path: "a", Size: 1}}, got.Items)
	}
	a.get(fmt.Sprintf(files, "memory")+"?offset=1").decode(t, &got)
	require.Empty(t, got.Items)
	require.False(t, got.HasMore)
	a.get(fmt.Sprintf(files, "memory")+"?path=src").failed(t, 404, api.CodeNotFound)
	for _, path := range []string{"a", "..", "/etc", "x%5Cy", ""} {
		a.get(fmt.Sprintf(files, "memory")+"?path="+path).failed(t, 400, api.CodeInvalidRequest)
	}
	a.get(fmt.Sprintf(files, "memory")+"?limit=0").failed(t, 400, api.CodeInvalidRequest)
	deep := newAPIOn(t, memory.New(), []agentloop.Agent{deepCoder()})
	deep.post("/start", `{"sessionId":"deep","agentType":"memory-coder","message":"go"}`)
	deep.wait("deep")
	deep.get("/sessions/deep/files?limit=1").decode(t, &got)
	require.Equal(t, api.FilesPage{
		Page: api.Page[api.File]{Items: []api.File{{Path: "a", Folder: true, Modified: got.Items[0].Modified}}, Total: 1000, Limit: 1, HasMore: true}, Truncated: true,
	}, got)
	got = api.FilesPage{}
	deep.get("/sessions/deep/files?path=b/b&offset=498").decode(t, &got)
	require.Equal(t, 499, got.Total)
	require.Equal(t, strings.Repeat("b/", 500)+"f", got.Items[0].Path)
	require.False(t, got.Truncated)
	a.post("/start", `{"sessionId":"broken","agentType":"broken-coder","message":"go"}`)
	a.wait("broken")
	a.get(fmt.Sprintf(files, "broken")).decode(t, &got)
	require.Empty(t, got.Items, "it could not be opened")
}

// A folder that only the provider can refuse is a mistake of the caller, not of the server.
func TestFilesThatCanNotBeListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		loop, err := engine.New(o.Log, []agentloop.Agent{coder(local.ID)}, &engine.Options{Workspaces: []workspace.Provider{p}})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		o.Loop = loop
	})
	a.post("/start", `{"sessionId":"s","agentType":"local-coder","message":"go"}`)
	a.wait("s")
	files, err := filepath.Glob(filepath.Join(dir, "trees", "*", "files", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Symlink("/etc", filepath.Join(files[0], "etc")))
	require.NoError(t, os.MkdirAll(filepath.Join(files[0], strings.Repeat("deep/", local.MaxDepth+2)), 0o755))
	a.get("/sessions/s/files?path=deep/deep/deep").done(t)
	for _, path := range []string{".", "deep", "etc", ".helix"} {
		a.get("/sessions/s/files?path="+path).failed(t, 400, api.CodeInvalidRequest)
	}
}

// A fork that needs a workspace of a kind that this node has not is refused.
func TestForkWithoutTheWorkspacesProvider(t *testing.T) {
	log := memory.New()
	a := newAPIOn(t, log, nil)
	of := func(f fact.Fact) eventlog.Entry {
		e, err := eventlog.NewFact("s", f, eventlog.Labels{})
		require.NoError(t, err)
		return e
	}
	a.append("s", created("s"),
		of(&fact.WorkspaceOpened{Name: "files", ProviderID: "moon", Ref: []byte("{}"), Base: factBase("s")}),
		of(&fact.WorkspaceSaved{Snapshot: []byte("{}"), Base: factBase("s")}))
	a.post("/sessions/s/fork", `{"sessionId":"f"}`).failed(t, 500, api.CodeWorkspaceWiring)
	a.get("/status?sessionId=f").failed(t, 404, api.CodeNotFound)
	a.get("/sessions/s/files").failed(t, 500, api.CodeWorkspaceWiring)
}
