package lab

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog"
)

// A lab's log that has become too large is replaced: people's labels stay, also if the process dies
// meanwhile.
func TestALargeLogIsReplaced(t *testing.T) {
	dir, quiet := filepath.Join(t.TempDir(), "lab"), slog.New(slog.DiscardHandler)
	log, done, err := openLog(t.Context(), dir, quiet)
	require.NoError(t, err)
	labels := lab.LabelsID("0123456789abcdef")
	for _, id := range []string{labels, "lab-0123456789ab-1"} {
		e, err := eventlog.NewChunk(&eventlog.StatePatch{
			Patches: []eventlog.PatchOp{{Op: "add", Path: "/s", Value: json.RawMessage("true")}},
			Base:    eventlog.Base{AgentID: id, AgentType: cohort.LabelsType, Timestamp: 1},
		}, eventlog.Labels{})
		require.NoError(t, err)
		_, err = log.Append(t.Context(), id, 0, []eventlog.Entry{e})
		require.NoError(t, err)
	}
	sessions := func() (ids []string) {
		for id, err := range log.Sessions(t.Context()) {
			require.NoError(t, err)
			ids = append(ids, id)
		}
		return ids
	}
	require.Len(t, sessions(), 2)
	done()

	defer func(n int64) { mostBytes = n }(mostBytes)
	mostBytes = 0
	log, done, err = openLog(t.Context(), dir, quiet)
	require.NoError(t, err)
	require.Equal(t, []string{labels}, sessions())
	done()

	log, done, err = openLog(t.Context(), dir, quiet)
	require.NoError(t, err)
	begun := filepath.Join(dir, "next")
	require.NoError(t, os.Mkdir(begun, 0o700))
	_, _, err = openLog(t.Context(), dir, quiet)
	require.ErrorContains(t, err, "--dir")
	require.DirExists(t, begun, "the process that has the log may be writing it")
	done()
	require.NoError(t, os.Remove(begun))

	mostBytes = 1 << 40
	require.NoError(t, os.Rename(settings.ServerFolder(dir), filepath.Join(dir, "next")))
	log, done, err = openLog(t.Context(), dir, quiet)
	require.NoError(t, err)
	require.Equal(t, []string{labels}, sessions(), "it died between two renames")
	done()
	require.NoDirExists(t, filepath.Join(dir, "old"))
}
