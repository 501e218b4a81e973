package main

import (
	"io"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// TestLogFlags: flags beat the environment, which beats the file.
func TestLogFlags(t *testing.T) {
	file := clitest.Config(t, "auth: {allowUnauthenticated: true}\nlog: {level: error, format: json}\n")
	read := func(args ...string) config.Log {
		t.Helper()
		var c cli
		parser, err := kong.New(&c, kong.Exit(func(int) { require.Fail(t, "exit") }))
		require.NoError(t, err)
		_, err = parser.Parse(append([]string{"serve", "--config", file}, args...))
		require.NoError(t, err)
		cfg, err := c.Serve.Load(&flags.Process{Stderr: io.Discard, Logs: c.Log})
		require.NoError(t, err)
		return cfg.Log
	}
	require.Equal(t, config.Log{Level: "error", Format: "json"}, read())
	t.Setenv("HELIX_LOG_LEVEL", "warn")
	require.Equal(t, config.Log{Level: "warn", Format: "json"}, read())
	require.Equal(t, config.Log{Level: "debug", Format: "text"}, read("--log-level", "debug", "--log-format=text"))

	var c cli
	parser, err := kong.New(&c)
	require.NoError(t, err)
	_, err = parser.Parse([]string{"version", "--log-format", "xml"})
	require.ErrorContains(t, err, "--log-format: log.format: must be text or json")
}
