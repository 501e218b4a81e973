package sqlite

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestSuspended(t *testing.T) {
	w := newWorld(t)
	run := func(session string, ends ...eventlog.RunStatus) {
		w.append(session, created(session, "red", ""))
		for i, end := range ends {
			id := fmt.Sprint("run", i)
			w.append(session, fact(session, id, &eventlog.RunRequested{RunID: id, Mode: eventlog.ModeStart, FactBase: factAt(session, 1)}))
			if end != eventlog.RunRunning {
				w.append(session, fact(session, id, &eventlog.RunEnded{RunID: id, Status: end, FactBase: factAt(session, 2)}))
			}
		}
	}
	run("new")
	run("runs", eventlog.RunRunning)
	run("done", eventlog.RunCompleted)
	run("asks", eventlog.RunClientTool)
	run("asks too", eventlog.RunCompleted, eventlog.RunClientTool)
	run("was answered", eventlog.RunClientTool, eventlog.RunRunning)
	run("stopped", eventlog.RunStopped)
	w.open()
	w.sessions(readmodel.SessionFilter{}) // waits until the rows are current
	got, err := w.models.Suspended(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[eventlog.RunStatus]int{
		eventlog.RunClientTool: 2, eventlog.RunStopped: 1, eventlog.RunChildren: 0, eventlog.RunStepPartial: 0,
	}, got)
}
