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
	// Level is the least level that is logged: debug, info, warn or error;
	// default info.
	Level string `json:"level"`
	// Format is text or json; default text.
	Format string `json:"format"`
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
	// File is the database's, relative to the working directory; each node
	// has one of its own. Empty: readmodels.db in dataDir.
	File string `json:"file"`
}

// Price is what a model costs, in US dollars per million tokens, at least 0.
type Price struct {
	Input  float64 `json:"input"`  // a million tokens of prompts
	Output float64 `json:"output"` // a million tokens of answers
	// CachedInput and CacheWrite are of the prompt's tokens that came from the
	// provider's cache, or went to it; nil: Input.
	CachedInput *float64 `json:"cachedInput"`
	CacheWrite  *float64 `json:"cacheWrite"` // see cachedInput; nil: input
	// Reasoning is of the answer's tokens that were thought; nil: Output.
	Reasoning *float64 `json:"reasoning"`
}

// Metrics configures the route /metrics.
type Metrics struct {
	Enabled bool `json:"enabled"` // default true
	// RequireAuth refuses a configuration whose public routes have /metrics; others
	// need a caller who may do the operation metrics anyway. Default false.
	RequireAuth bool `json:"requireAuth"`
}

// Tracing configures the export of OpenTelemetry traces.
type Tracing struct {
	// Endpoint is the base URL of an OTLP/HTTP collector, to which /v1/traces
	// is added; absolute, http or https. Empty: no traces.
	Endpoint string `json:"endpoint"`
	// Headers are sent along, such as an Authorization.
	Headers map[string]Secret `json:"headers"`
	// SampleRatio is the share of sessions that are traced, from 0 to 1;
	// default 1.
	SampleRatio float64 `json:"sampleRatio"`
	// Content records prompts and answers in the spans; default false.
	Content bool `json:"content"`
}

// Debug opens what a developer of helixd looks at.
type Debug struct {
	// PProf serves /debug/pprof/ to callers who may do the operation admin.
	PProf bool `json:"pprof"` // default false
}

// Retention removes old records from the log on a schedule.
type Retention struct {
	// MaxAge is how old records may get. Older ones are removed for good, as by
	// helixd retain: sessions keep their state, and their history begins
	// later. 0, the default: for ever.
	MaxAge time.Duration `json:"maxAge"`
	// MaxBytes is how much the log may hold; above it what is oldest goes
	// first. 0, the default: as much as there is room for.
	MaxBytes Bytes `json:"maxBytes"`
	// Every is how often both are looked at, greater than 0; default 1h.
	Every time.Duration `json:"every"`
}

// Sessions configures the expiry of sessions.
type Sessions struct {
	// ExpireAfter is how long after it was asked for its last run a session
	// expires: a sweep then ends what still waits. 0, the default: never. It is
	// recorded with each run that is asked for, for good.
	ExpireAfter time.Duration `json:"expireAfter"`
	// SweepEvery is how often expired sessions are looked for; 0, the default:
	// only when a command asks.
	SweepEvery time.Duration `json:"sweepEvery"`
}

// Disk says when the daemon stops writing, for want of room.
type Disk struct {
	// MinFree is the least room that dataDir's disk has to have; with less the
	// daemon is read-only until there is enough again. Default 1GiB; 0: any
	// is enough.
	MinFree Bytes `json:"minFree"`
}

// Defaults of the operation's keys that are not zero.
const (
	DefaultRetentionEvery       = time.Hour
	DefaultMinFree        Bytes = 1 << 30
)

func (c *Config) setOperationDefaults() {
	c.Log = Log{Level: "info", Format: LogText}
	c.ReadModels.Enabled = true
	c.Metrics.Enabled = true
	c.Tracing.SampleRatio = 1
	c.Retention.Every = DefaultRetentionEvery
	c.Disk.MinFree = DefaultMinFree
}
