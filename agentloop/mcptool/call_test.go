package mcptool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/mcptool"
)

func TestTools(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, _ string) {
		c := open(t, server, nil)
		echo := tool(t, c, "s_echo")
		require.Equal(t, "Says it again.", echo.Description)
		require.JSONEq(t, `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, string(echo.InputSchema))
		require.Zero(t, echo.Timeout)
	})
}

func TestResults(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, _ string) {
		c := open(t, server, nil)
		raw, err := call(t, t.Context(), c, "s_echo", `{"text":"<é>"}`)
		require.NoError(t, err)
		var echoed map[string]any
		require.NoError(t, json.Unmarshal([]byte(raw), &echoed))
		require.Equal(t, map[string]any{"text": "<é>"}, echoed["arguments"])
		require.Equal(t, "s:r:c1", echoed["meta"], "the idempotency key")

		for name, want := range map[string]string{
			"s_text":    `"one\ntwo"`,
			"s_nothing": `null`,
			"s_picture": `[{"type":"text","text":"look"},{"type":"image","mimeType":"image/png","data":"cG5n"}]`,
			"s_digits":  `{"id":9007199254740993}`,
		} {
			got, err := call(t, t.Context(), c, name, `{}`)
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
		}
	})
}

func TestFailures(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, _ string) {
		c := open(t, server, nil)
		_, err := call(t, t.Context(), c, "s_fail", `{}`)
		require.ErrorContains(t, err, "no luck\néé")
		require.LessOrEqual(t, len(err.Error()), agentloop.MaxErrorText)
		_, err = call(t, t.Context(), c, "s_fail_silently", `{}`)
		require.EqualError(t, err, "the tool failed")
		_, err = call(t, t.Context(), c, "s_refuse", `{}`)
		require.EqualError(t, err, "the MCP server refused the call: not like that")
	})
}

func TestTheContextsEndCancelsTheRequest(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, dir string) {
		c := open(t, server, nil)
		before := pid(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := tool(t, c, "s_slow").Execute(ctx, &agentloop.Call{}, json.RawMessage(`{}`))
			failed <- err
		}()
		eventually(t, "the call has begun", func() bool { return content(dir, "slow") == "started\n" })
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		eventually(t, "the server is notified", func() bool { return strings.HasSuffix(content(dir, "slow"), "cancelled\n") })
		require.Equal(t, before, pid(t, c), "the server continues")
	})
}

func TestCloseEndsCalls(t *testing.T) {
	eachTransport(t, func(t *testing.T, server mcptool.Server, dir string) {
		c := open(t, server, nil)
		failed := make(chan error, 1)
		go func() {
			_, err := tool(t, c, "s_slow").Execute(t.Context(), &agentloop.Call{}, json.RawMessage(`{}`))
			failed <- err
		}()
		eventually(t, "the call has begun", func() bool { return content(dir, "slow") != "" })
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		require.NoError(t, c.Close())
		require.NoError(t, <-closed, "closing twice, at once")
		require.EqualError(t, <-failed, "the MCP server is closed")
		_, err := call(t, t.Context(), c, "s_text", `{}`)
		require.EqualError(t, err, "the MCP server is closed")
	})
}
