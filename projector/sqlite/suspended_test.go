package sqlite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestSuspended(t *testing.T) {
	w := newWorld(t)
	run := func(session string, ends ...fact.RunStatus) {
		w.append(session, created(session, "red", ""))
		for i, end := range ends {
			id := fmt.Sprint("run", i)
			w.append(session, factOf(session, id, &fact.RunRequested{RunID: id, Mode: fact.ModeStart, Base: factAt(session, 1)}))
			if end != fact.RunRunning {
				w.append(session, factOf(session, id, &fact.RunEnded{RunID: id, Status: end, Base: factAt(session, 2)}))
			}
		}
	}
	run("new")
	run("runs", fact.RunRunning)
	run("done", fact.RunCompleted)
	run("asks", fact.RunClientTool)
	run("asks too", fact.RunCompleted, fact.RunClientTool)
	run("was answered", fact.RunClientTool, fact.RunRunning)
	run("stopped", fact.RunStopped)
	w.open()
	w.sessions(readmodel.SessionFilter{}) // waits until the rows are current
	got, err := w.models.Suspended(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[fact.RunStatus]int{
		fact.RunClientTool: 2, fact.RunStopped: 1, fact.RunChildren: 0, fact.RunStepPartial: 0,
	}, got)
}
