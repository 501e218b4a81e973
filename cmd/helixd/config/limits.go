package config

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
)

// DefaultConnections is the most that limits.connections is by default.
const DefaultConnections = 32768

// Limits bound what one node serves at a time.
type Limits struct {
	// Connections is how many HTTP connections may be open. For one more, the
	// connection that has been idle for the longest is closed; if none is idle, the
	// new one is. 0, the default: half of the files that the process may open, at most
	// 32768.
	Connections int `json:"connections"`
	// Streams is how many streams one caller may have open, answers of POST /chat
	// included. Callers without credentials are distinguished by their address. 0, the
	// default: a 32nd of the connections, at least 64, but never more than half of
	// them.
	Streams int `json:"streams"`
}

// Tenant has the limits of one tenant; 0, the default of each: no limit.
type Tenant struct {
	Sessions          int     `json:"sessions"`          // root sessions in the log
	Bytes             Bytes   `json:"bytes"`             // payloads of all records of its sessions, including records that retention has removed
	Runs              int     `json:"runs"`              // runs of root sessions at a time
	RequestsPerSecond float64 `json:"requestsPerSecond"` // requests at one node; as many may arrive at once
	Streams           int     `json:"streams"`           // open streams at a time, at one node
	TokensPerDay      int     `json:"tokensPerDay"`      // tokens of its sessions' model calls, prompts and answers, on a day of UTC, at all nodes
	USDPerDay         float64 `json:"usdPerDay"`         // the cost of these tokens in US dollars, by prices, which must list the agents' models
}

// defaultTenant is the entry for tenants that have none.
const defaultTenant = "default"

// Quota returns the limits of tenants.
func (c *Config) Quota() quota.Tenants {
	t := quota.Tenants{Named: map[string]quota.Limits{}}
	for name, l := range c.Tenants {
		limits := quota.Limits{
			Sessions: l.Sessions, Bytes: int64(l.Bytes), Runs: l.Runs, RequestsPerSecond: l.RequestsPerSecond, Streams: l.Streams,
			TokensPerDay: int64(l.TokensPerDay), USDPerDay: l.USDPerDay,
		}
		if name == defaultTenant {
			t.Default = limits
			continue
		}
		t.Named[name] = limits
	}
	return t
}

func (k *checker) checkLimits() {
	l := k.config.Limits
	k.require(l.Connections >= 0, "limits.connections", "must not be negative")
	k.require(l.Streams >= 0, "limits.streams", "must not be negative")
	for _, name := range slices.Sorted(maps.Keys(k.config.Tenants)) {
		path, t := join("tenants", name), k.config.Tenants[name]
		k.require(eventlog.ValidateID(name) == nil, path, "must be a name of at most 256 bytes")
		values := map[string]float64{
			"sessions": float64(t.Sessions), "bytes": float64(t.Bytes), "runs": float64(t.Runs),
			"requestsPerSecond": t.RequestsPerSecond, "streams": float64(t.Streams),
			"tokensPerDay": float64(t.TokensPerDay), "usdPerDay": t.USDPerDay,
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			value := values[key]
			counted := key == "sessions" || key == "bytes" || key == "runs"
			k.require(value <= 0 || !counted || k.config.ReadModels.Enabled, join(path, key), "needs readModels.enabled, which count it")
			k.require(value >= 0 && value <= math.MaxFloat64, join(path, key), "must be a number from 0 on")
		}
		if t.USDPerDay > 0 {
			k.checkPriced(join(path, "usdPerDay"))
		}
	}
}

// checkPriced refuses agents whose model calls cost an unknown amount.
func (k *checker) checkPriced(path string) {
	for _, agent := range slices.Sorted(maps.Keys(k.config.Agents)) {
		m := k.config.Agents[agent].Model
		_, priced := k.config.Prices[m.Name]
		k.require(priced || m.Provider == ProviderScripted, path, "needs prices."+m.Name+", the model of agents."+agent)
	}
}

// DailyLimits reports whether a tenant has a limit of what it spends a day.
func (c *Config) DailyLimits() bool {
	for _, t := range c.Tenants {
		if t.TokensPerDay > 0 || t.USDPerDay > 0 {
			return true
		}
	}
	return false
}

// leastStreams is how many streams one caller may have open by default, however few
// connections a node has.
const leastStreams = 64

// MostStreams is how many streams a caller may have open at a node with so many
// connections: by default so few that some callers together can't take the node.
func (l Limits) MostStreams(connections int) int {
	return cmp.Or(l.Streams, max(min(max(connections/32, leastStreams), connections/2), 1))
}
