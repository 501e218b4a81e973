package config

import (
	"strings"
	"time"
)

const (
	durabilityFsync    = "fsync"
	durabilityInterval = "interval="
)

// SyncInterval is how often an embedded server's data reaches the disk. 0
// means before every acknowledgement.
func (c *Config) SyncInterval() time.Duration {
	interval, _ := parseDurability(c.Durability)
	return interval
}

// parseDurability reads "fsync", which is 0, or "interval=<duration>".
func parseDurability(s string) (interval time.Duration, ok bool) {
	if s == durabilityFsync {
		return 0, true
	}
	text, found := strings.CutPrefix(s, durabilityInterval)
	if !found {
		return 0, false
	}
	interval, err := time.ParseDuration(text)
	if err != nil || interval <= 0 {
		return 0, false
	}
	return interval, true
}
