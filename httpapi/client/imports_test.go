package client_test

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/uimessage"
)

// A program that uses the client contains no part of the server.
func TestTheClientHasNoServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	const repo = "github.com/helixd/helixd/"
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if folder, ours := strings.CutPrefix(dep, repo); ours {
			require.Contains(t, []string{
				"eventlog", "eventlog/fact", "projector", "projector/durable", "projector/jsondoc", "projector/readmodel", "projector/timeline", "agentloop/model/sse", "agentloop/model/upstream", "agentloop/remote", "agentloop/remote/remotehttp", "httpapi/api", "httpapi/client",
			}, folder)
		}
		require.NotContains(t, dep, "nats")
	}
}

// A message that is read has the members of the one that is written, whose parts
// have types.
func TestUIMessageIsTheServers(t *testing.T) {
	members := func(typ reflect.Type) (all []string) {
		for _, f := range reflect.VisibleFields(typ) {
			all = append(all, f.Tag.Get("json"))
		}
		return all
	}
	require.Equal(t, members(reflect.TypeFor[uimessage.Message]()), members(reflect.TypeFor[api.UIMessage]()))
}
