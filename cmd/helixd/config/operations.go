package config

import (
	"log/slog"
	"time"
)

// Formats of log lines.
const (
	LogText = "text"
	LogJSON = "json"
)

// Log says what the daemon's log lines look like.
type Log struct {
	// Level is the lowest level that is logged: debug, info, warn or error; default
	// info.
	Level string `json:"level"`
	// Format is text or json; default text.
	Format string `json:"format"`
	// Requests is true if each HTTP request is logged, with its requestId, route, status, duration
	// and caller; default false.
	Requests bool `json:"requests"`
}

// SlogLevel is Level as slog has it.
func (l Log) SlogLevel() slog.Level {
	level, _ := parseLevel(l.Level)
	return level
}

func parseLevel(s string) (level slog.Level, ok bool) {
	level, ok = map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[s]
	return level, ok
}

// ReadModels is the database that listings, usage and search are answered
// from. It can be deleted at any time: it is made again from the log.
type ReadModels struct {
	Enabled bool `json:"enabled"` // default true
	// File is the path of the database, relative to the working directory; each node
	// needs a separate one. Empty: readmodels.db in dataDir.
	File string `json:"file"`
}

// Price is what a model costs, in US dollars per million tokens, at least 0.
type Price struct {
	Input  float64 `json:"input"`  // the price of a million tokens of prompts
	Output float64 `json:"output"` // the price of a million tokens of answers
	// CachedInput is the price of a prompt's tokens that came from the provider's
	// cache; nil: input.
	CachedInput *float64 `json:"cachedInput"`
	CacheWrite  *float64 `json:"cacheWrite"` // the price of a prompt's tokens that were written to the cache; nil: input
	// Reasoning is the price of an answer's tokens of reasoning; nil: output.
	Reasoning *float64 `json:"reasoning"`
}

// Metrics configures the route /metrics.
type Metrics struct {
	Enabled bool `json:"enabled"` // default true
	// RequireAuth is true to refuse a configuration that lists /metrics in public.
	// Without that, /metrics needs the operation metrics anyway. Default false.
	RequireAuth bool `json:"requireAuth"`
}

// Tracing configures the export of OpenTelemetry traces.
type Tracing struct {
	// Endpoint is the base URL of an OTLP/HTTP collector, absolute, http or https;
	// helixd adds /v1/traces. Empty: no traces.
	Endpoint string `json:"endpoint"`
	// Headers are sent along, such as an Authorization.
	Headers map[string]Secret `json:"headers"`
	// SampleRatio is the share of sessions that are traced, from 0 to 1;
	// default 1.
	SampleRatio float64 `json:"sampleRatio"`
	// Content is true to record prompts and answers in the spans; default false.
	Content bool `json:"content"`
}

// Debug opens what a developer of helixd looks at.
type Debug struct {
	// PProf is true to serve /debug/pprof/ to callers with the operation admin;
	// default false.
	PProf bool `json:"pprof"` // default false
}

// Retention removes old records from the log on a schedule.
type Retention struct {
	// MaxAge is the maximum age of records. Older ones are removed for good, as with
	// helixd retain: sessions keep their state, and their history begins later. 0, the
	// default: no limit.
	MaxAge time.Duration `json:"maxAge"`
	// MaxBytes is the maximum size of the log; above it, the oldest records are
	// removed first. 0, the default: no limit.
	MaxBytes Bytes `json:"maxBytes"`
	// Every is how often both are checked, greater than 0; default 1h.
	Every time.Duration `json:"every"`
}

// Sessions configures the expiry of sessions.
type Sessions struct {
	// ExpireAfter is how long after its last request a session expires: a sweep then
	// ends it if it still waits. 0, the default: never. Each request records the time,
	// so a change applies to later requests.
	ExpireAfter time.Duration `json:"expireAfter"`
	// SweepEvery is how often expired sessions are ended; 0, the default: only by a
	// command.
	SweepEvery time.Duration `json:"sweepEvery"`
}

// Disk says when the daemon stops writing, for want of room.
type Disk struct {
	// MinFree is the minimum free space on dataDir's disk; with less, the daemon is
	// read-only until there is enough again. Default 1GiB; 0: no minimum.
	MinFree Bytes `json:"minFree"`
}

// Defaults of the operation's keys that are not zero.
const (
	defaultRetentionEvery       = time.Hour
	defaultMinFree        Bytes = 1 << 30
)

func (c *Config) setOperationDefaults() {
	c.Log = Log{Level: "info", Format: LogText}
	c.ReadModels.Enabled = true
	c.Metrics.Enabled = true
	c.Tracing.SampleRatio = 1
	c.Retention.Every = defaultRetentionEvery
	c.Disk.MinFree = defaultMinFree
}
