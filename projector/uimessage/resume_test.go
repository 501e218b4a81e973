package uimessage_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// The stream_resync that begins a resumed stream describes the last checkpoint that
// the client has, and why the session went back the last time.
func TestAResyncForAClientThatResumes(t *testing.T) {
	tree := &projector.Tree{Session: projector.Session{
		SessionID: "s", AgentType: "a", StepCount: 3, Messages: make([]projector.Message, 9),
		Checkpoints: []projector.Checkpoint{
			{ID: "cp1", StepCount: 1, MessageCount: 3, StreamSequence: 10}, {ID: "cp2", StepCount: 2, MessageCount: 5, StreamSequence: 20},
		},
	}}
	resync := func(from uint64) (c eventlog.StreamResync) {
		var part struct {
			Type string                `json:"type"`
			Data eventlog.StreamResync `json:"data"`
		}
		require.NoError(t, json.Unmarshal(uimessage.Resync(tree, from), &part))
		require.Equal(t, "data-stream-resync", part.Type)
		part.Data.Base = eventlog.Base{}
		return part.Data
	}
	require.Equal(t, eventlog.StreamResync{Reason: eventlog.ResyncCrashRecovery}, resync(9))
	tree.Resync = eventlog.ResyncRollback
	require.Equal(t, eventlog.StreamResync{
		CheckpointID: "cp1", StepCount: 1, MessageCount: 3, FromSequence: 10, Reason: eventlog.ResyncRollback,
	}, resync(19))
	require.Equal(t, "cp2", resync(20).CheckpointID)
	require.Equal(t, uint64(20), resync(25).FromSequence)
}
