package operate

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/eventlog/version"
)

func TestVersionPrintsJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, versionCmd{JSON: true}.Run(&flags.Process{Stdout: &out}))
	var got map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, version.Current(), got["version"])
	require.Equal(t, runtime.Version(), got["go"])
	require.Contains(t, got, "modified")
}
