package config

import (
	"maps"
	"math"
	"slices"
	"strings"
)

func (k *checker) checkOperations() {
	c := k.config
	_, ok := parseLevel(c.Log.Level)
	k.require(ok, "log.level", "must be debug, info, warn or error")
	k.require(c.Log.Format == LogText || c.Log.Format == LogJSON, "log.format", "must be text or json")
	k.require(!strings.Contains(c.ReadModels.File, "\n"), "readModels.file", "must be a file's path, not its content")
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		k.checkPrice(c.Prices[model], join("prices", model))
	}
	t := c.Tracing
	k.require(t.Endpoint == "" || isHTTPURL(t.Endpoint), "tracing.endpoint", "must be an absolute http or https URL")
	k.checkHeaders(t.Headers, "tracing.headers")
	k.require(t.SampleRatio >= 0 && t.SampleRatio <= 1, "tracing.sampleRatio", "must be from 0 to 1")
	k.require(c.Retention.MaxAge >= 0, "retention.maxAge", "must not be negative")
	k.require(c.Retention.MaxBytes >= 0, "retention.maxBytes", "must not be negative")
	k.require(c.Retention.Every > 0, "retention.every", "must be greater than 0")
	k.require(c.Sessions.ExpireAfter >= 0, "sessions.expireAfter", "must not be negative")
	k.require(c.Sessions.SweepEvery >= 0, "sessions.sweepEvery", "must not be negative")
	k.needed(c.Sessions.SweepEvery == 0 || c.Sessions.ExpireAfter > 0, "sessions", "sweepEvery needs expireAfter")
	k.require(c.Disk.MinFree >= 0, "disk.minFree", "must not be negative")
}

func (k *checker) checkPrice(p Price, path string) {
	for _, price := range []struct {
		key   string
		value *float64
	}{
		{"input", &p.Input},
		{"output", &p.Output},
		{"cachedInput", p.CachedInput},
		{"cacheWrite", p.CacheWrite},
		{"reasoning", p.Reasoning},
	} {
		k.require(price.value == nil || *price.value >= 0 && *price.value <= math.MaxFloat64, join(path, price.key), "must be a number from 0 on")
	}
}
