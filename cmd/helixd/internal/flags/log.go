package flags

import (
	"io"
	"log/slog"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// Log are the flags of log messages. All commands have them, and they beat the file.
type Log struct {
	LogLevel  *string `help:"Least level of log messages: debug, info, warn or error (default info)." placeholder:"LEVEL" env:"HELIX_LOG_LEVEL"`
	LogFormat *string `help:"Log messages as text or json (default text)." placeholder:"FORMAT" env:"HELIX_LOG_FORMAT"`
}

// Validate makes a bad flag a matter of usage.
func (f Log) Validate() error { return f.Set(config.Default()) }

// Set sets the keys whose flags were given.
func (f Log) Set(c *config.Config) error {
	return setFlags(c, []keyFlag{{"--log-level", "log.level", f.LogLevel}, {"--log-format", "log.format", f.LogFormat}})
}

// NewLogger returns a logger with the configured level and format. Lines that belong
// to an HTTP request have its id.
func NewLogger(w io.Writer, l config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: l.SlogLevel()}
	if l.Format == config.LogJSON {
		return slog.New(httpapi.WithRequestID(slog.NewJSONHandler(w, opts)))
	}
	return slog.New(httpapi.WithRequestID(slog.NewTextHandler(w, opts)))
}
