package client_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
	"github.com/helixd/helixd/snapshot"
)

// The client's answers have the members of the server's.
func TestAnswersAreTheServers(t *testing.T) {
	for _, pair := range [][2]any{
		{engine.Started{}, client.Started{}},
		{httpapi.RemoteStatus{}, client.Status{}},
		{engine.Submitted{}, client.Submitted{}},
		{snapshot.Snapshot{}, client.Snapshot{}},
		{uimessage.Message{}, client.UIMessage{}},
		{httpapi.Page[projector.Run]{}, client.Page[projector.Run]{}},
		{httpapi.SessionSummary{}, client.SessionSummary{}},
		{httpapi.Counts{}, client.Counts{}},
		{httpapi.PendingToolCall{}, client.PendingToolCall{}},
		{httpapi.StateAt{}, client.StateAt{}},
		{httpapi.StateDiff{}, client.StateDiff{}},
		{httpapi.DiffSpent{}, client.DiffSpent{}},
		{httpapi.CallChange{}, client.CallChange{}},
		{httpapi.Comparison{}, client.Comparison{}},
		{httpapi.Compared{}, client.Compared{}},
		{httpapi.CallAt{}, client.CallAt{}},
		{httpapi.UsagePage{}, client.UsagePage{}},
		{httpapi.History{}, client.History{}},
		{httpapi.RolledBack{}, client.RolledBack{}},
		{engine.Forked{}, client.Forked{}},
		{httpapi.Appended{}, client.Appended{}},
		{httpapi.Imported{}, client.Imported{}},
		{httpapi.Erased{}, client.Erased{}},
		{httpapi.FoundMemories{}, client.FoundMemories{}},
		{httpapi.FoundMemory{}, client.FoundMemory{}},
		{httpapi.ErasedMemories{}, client.ErasedMemories{}},
		{memory.Processed{}, client.ProcessedMemories{}},
		{snapshot.Retained{}, client.Retained{}},
		{engine.Swept{}, client.Swept{}},
		{httpapi.Readiness{}, client.Readiness{}},
	} {
		require.Equal(t, members(reflect.TypeOf(pair[0])), members(reflect.TypeOf(pair[1])), "%T", pair[1])
	}
}

// members returns the JSON members of a struct, with the kinds of their types.
func members(typ reflect.Type) map[string]string {
	all := map[string]string{}
	for _, f := range reflect.VisibleFields(typ) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			kind := f.Type.Kind().String()
			if f.Type == reflect.TypeFor[json.RawMessage]() {
				kind = "JSON"
			}
			all[name] = kind
		}
	}
	return all
}

// Whoever uses the client has no part of the server in the program.
func TestTheClientHasNoServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	const repo = "github.com/helixd/helixd/"
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if folder, ours := strings.CutPrefix(dep, repo); ours {
			require.Contains(t, []string{"eventlog", "projector", "projector/jsondoc", "projector/readmodel", "projector/timeline", "agentloop/remote", "httpapi/client"}, folder)
		}
		require.NotContains(t, dep, "nats")
	}
}
