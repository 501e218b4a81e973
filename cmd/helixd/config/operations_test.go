package config

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadOperations(t *testing.T) {
	text, err := os.ReadFile("testdata/example.yaml")
	require.NoError(t, err)
	c, err := loadText(t, string(text), env{
		"HELIX_TOKEN": "t", "OPENAI_API_KEY": "k", "WEATHER_TOKEN": "w", "OTLP_TOKEN": "Basic o", "GATEWAY": "g", "HELIX_DISK_MIN_FREE": "2GiB",
	})
	require.NoError(t, err)
	assert.Equal(t, Log{Level: "debug", Format: LogJSON}, c.Log)
	assert.Equal(t, slog.LevelDebug, c.Log.SlogLevel())
	assert.Equal(t, ReadModels{Enabled: true, File: "./read.db"}, c.ReadModels)
	assert.Equal(t, map[string]Price{
		"gpt-4.1": {Input: 2, Output: 8.5, CachedInput: new(0.5), CacheWrite: new(2.5), Reasoning: new(9.0)},
		"local":   {},
	}, c.Prices)
	assert.Equal(t, Metrics{Enabled: true, RequireAuth: true}, c.Metrics)
	assert.Equal(t, Tracing{
		Endpoint: "http://127.0.0.1:4318", Headers: map[string]Secret{"Authorization": NewSecret("Basic o")}, SampleRatio: 0.25, Content: true,
	}, c.Tracing)
	assert.True(t, c.Debug.PProf)
	assert.Equal(t, Retention{MaxAge: 720 * time.Hour, MaxBytes: 20e9, Every: 30 * time.Minute}, c.Retention)
	assert.Equal(t, Sessions{ExpireAfter: 24 * time.Hour, SweepEvery: 10 * time.Minute}, c.Sessions)
	assert.Equal(t, Disk{MinFree: 2 << 30}, c.Disk)
}

// 0 needs no unit, whatever it is an amount of.
func TestZeroOperations(t *testing.T) {
	c, err := loadText(t, "retention: {maxAge: 0, maxBytes: 0}\nsessions: {expireAfter: 0, sweepEvery: 0s}\ndisk: {minFree: 0}\n", nil)
	require.NoError(t, err)
	assert.Equal(t, Retention{Every: defaultRetentionEvery}, c.Retention)
	assert.Zero(t, c.Sessions)
	assert.Zero(t, c.Disk.MinFree)
}

var badOperations = []struct{ name, text, want string }{
	{"level", "log: {level: loud}\n", "helix.yaml:1: log.level: must be debug, info, warn or error"},
	{"format", "log:\n  format: xml\n", "helix.yaml:2: log.format: must be text or json"},
	{"read models", "readModels:\n  enabled: 1\n  file: \"a\\nb\"\n", "helix.yaml:2: readModels.enabled: must be true or false\nhelix.yaml:3: readModels.file: must be a file's path, not its content"},
	{"prices", "prices:\n  m.1: {input: -1}\n  m.2: {output: free}\n  m.3: {reasoning: -2, cached: 1}\n", "helix.yaml:2: prices.m.1.input: must be a number from 0 on\n" +
		"helix.yaml:3: prices.m.2.output: must be a number\nhelix.yaml:4: prices.m.3.cached: " + unknown[Price]() + "\nhelix.yaml:4: prices.m.3.reasoning: must be a number from 0 on"},
	{"endless price", "prices: {m: {input: 'env:INF'}}\n", "helix.yaml:1: prices.m.input: must be a number from 0 on"},
	{"endpoint", "tracing:\n  endpoint: 'collector:4318'\n", "helix.yaml:2: tracing.endpoint: must be an absolute http or https URL"},
	{"tracing headers", "tracing: {headers: {'a b': x}}\n", "helix.yaml:1: tracing.headers.a b: not an HTTP header's name"},
	{"ratio", "tracing: {sampleRatio: 1.5}\n", "helix.yaml:1: tracing.sampleRatio: must be from 0 to 1"},
	{"no ratio", "tracing: {sampleRatio: 'env:NAN'}\n", "helix.yaml:1: tracing.sampleRatio: must be from 0 to 1"},
	{"metrics", "metrics: {enabled: sometimes}\n", "helix.yaml:1: metrics.enabled: must be true or false"},
	{"pprof", "debug: {pprof: 'on'}\n", "helix.yaml:1: debug.pprof: must be true or false"},
	{"retention", "retention:\n  maxAge: -1h\n  maxBytes: -1\n  every: 0\n", "helix.yaml:2: retention.maxAge: must not be negative\n" +
		"helix.yaml:3: retention.maxBytes: must be an amount of bytes such as 512MiB\nhelix.yaml:4: retention.every: must be greater than 0"},
	{"age without unit", "retention: {maxAge: 30}\n", "helix.yaml:1: retention.maxAge: must be a duration such as 30s"},
	{"bytes", "disk: {minFree: 1.5GiB}\n", "helix.yaml:1: disk.minFree: must be an amount of bytes such as 512MiB"},
	{"sessions", "sessions:\n  expireAfter: -1h\n  sweepEvery: -1h\n", "helix.yaml:1: sessions: sweepEvery needs expireAfter\n" +
		"helix.yaml:2: sessions.expireAfter: must not be negative\nhelix.yaml:3: sessions.sweepEvery: must not be negative"},
	{"sweep of nothing", "sessions:\n  sweepEvery: 1h\n", "helix.yaml:1: sessions: sweepEvery needs expireAfter"},
}

func TestBadOperations(t *testing.T) {
	for _, tt := range badOperations {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadText(t, tt.text, env{"INF": "+Inf", "NAN": "NaN"})
			assert.EqualError(t, err, tt.want)
			assert.Nil(t, c)
		})
	}
}

func TestBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1": 1, "1024": 1 << 10, "7B": 7, "512MiB": 512 << 20, "512 MiB": 512 << 20, "3KB": 3000, "3kB": 3000, "2MB": 2e6, "1GB": 1e9,
		"1TB": 1e12, "1KiB": 1 << 10, "2TiB": 2 << 40, "9223372036854775807": 1<<63 - 1,
	} {
		b, ok := ParseBytes(text)
		assert.True(t, ok, text)
		assert.Equal(t, want, b, text)
		again, ok := ParseBytes(b.String())
		assert.True(t, ok, b)
		assert.Equal(t, b, again)
	}
	for _, text := range []string{"", "MiB", "-1", "+1", "1.5GiB", "1e3", "1 2", "1mib", "1G", "9223372036854775808", "8388608TiB", "99999999999999999999"} {
		_, ok := ParseBytes(text)
		assert.False(t, ok, text)
	}
	assert.Equal(t, "1GiB", defaultMinFree.String())
	assert.Equal(t, "1025", Bytes(1025).String())
	assert.Equal(t, "0", Bytes(0).String())
}
