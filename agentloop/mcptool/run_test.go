package mcptool_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// run has an agent call one of a server's tools and returns the session's
// state. seen learns of each record.
func run(t *testing.T, c *mcptool.Client, name, args string, seen func(eventlog.Record)) *projector.Tree {
	t.Helper()
	log := memory.New()
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "a", Tools: c.Tools(),
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "call-1", Name: name, Arguments: json.RawMessage(args)}}},
			{Text: "done"},
		}, nil),
	}}, nil)
	require.NoError(t, err)
	defer loop.Stop()
	_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	state := new(projector.Tree)
	for r, err := range log.Follow(ctx, "s", 0) {
		require.NoError(t, err)
		projector.Apply(state, r)
		seen(r)
		if state.StreamStatus.Terminal() {
			break
		}
	}
	require.Equal(t, projector.SessionCompleted, state.Status, "a tool's failure is not the run's")
	return state
}

func TestAWholeRun(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, _ string) {
		c := open(t, server, nil)
		var chunks []string
		state := run(t, c, "s_echo", `{"text":"hi"}`, func(r eventlog.Record) {
			if r.Call != "" && r.Kind == eventlog.KindChunk {
				chunks = append(chunks, r.Type)
			}
		})
		require.Equal(t, []string{"tool_start", "tool_end"}, chunks)
		var result struct {
			Arguments map[string]any
			Meta      string
		}
		require.NoError(t, json.Unmarshal(state.Messages[2].Result, &result))
		require.Equal(t, map[string]any{"text": "hi"}, result.Arguments)
		require.Equal(t, "s:"+state.Runs[0].RunID+":call-1", result.Meta)
	})
}

func TestARunGoesOnAfterAFailedCall(t *testing.T) {
	server, _ := stdio(t)
	c := open(t, server, nil)
	ignore := func(eventlog.Record) {}
	require.Contains(t, run(t, c, "s_die", `{}`, ignore).Messages[2].Error, "its connection ended during the call")
	slow := run(t, open(t, server, &mcptool.Options{CallTimeout: 20 * time.Millisecond}), "s_slow", `{}`, ignore).Messages[2]
	require.Equal(t, agentloop.CodeToolTimeout, slow.ErrorCode)
	require.Equal(t, agentloop.CodeToolInput, run(t, c, "s_echo", `{"text":1}`, ignore).Messages[2].ErrorCode,
		"the server's schema is enforced before the call")
}

func TestProgress(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, dir string) {
		if strings.HasSuffix(t.Name(), "JSON") {
			t.Skip("an answer that is one JSON message has no room for progress")
		}
		c := open(t, server, nil)
		state := run(t, c, "s_progress", `{}`, func(r eventlog.Record) {
			if r.Type != "custom" {
				return
			}
			chunk, err := eventlog.DecodeChunk(r.Payload)
			require.NoError(t, err)
			event := chunk.(*eventlog.CustomEvent)
			require.Equal(t, mcptool.ProgressEvent, event.EventName)
			require.JSONEq(t, `{"id":"call-1","toolCallId":"call-1","progress":1,"total":2,"message":"half"}`, string(event.Data))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
		})
		require.Equal(t, `"done"`, string(state.Messages[2].Result), state.Messages[2].Error)
	})
}
