package main

import (
	"io"
	"log/slog"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// logFlags are of all commands, and beat the file.
type logFlags struct {
	LogLevel  *string `help:"Least level of log messages: debug, info, warn or error (default info)." placeholder:"LEVEL" env:"HELIX_LOG_LEVEL"`
	LogFormat *string `help:"Log messages as text or json (default text)." placeholder:"FORMAT" env:"HELIX_LOG_FORMAT"`
}

// Validate makes a bad flag a matter of usage.
func (f logFlags) Validate() error { return f.set(config.Default()) }

// set sets the flags that were given.
func (f logFlags) set(c *config.Config) error {
	return setFlags(c, []keyFlag{{"--log-level", "log.level", f.LogLevel}, {"--log-format", "log.format", f.LogFormat}})
}

// newLogger writes lines as the configuration says. Those that belong to an
// HTTP request have its id.
func newLogger(w io.Writer, l config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: l.SlogLevel()}
	if l.Format == config.LogJSON {
		return slog.New(httpapi.WithRequestID(slog.NewJSONHandler(w, opts)))
	}
	return slog.New(httpapi.WithRequestID(slog.NewTextHandler(w, opts)))
}
