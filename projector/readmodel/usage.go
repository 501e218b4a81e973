package readmodel

import (
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// UsageKey is what usage is summed by.
type UsageKey string

// Keys of usage.
const (
	ByAgent UsageKey = "agent" // the agent type, sub-agents' own
	ByModel UsageKey = "model" // as the provider names it; tool calls belong to none
	ByUser  UsageKey = "user"  // the root's userId; empty: nobody
	ByDay   UsageKey = "day"   // UTC, 2026-01-31, on which the run began
)

// UsageKeys are all keys.
func UsageKeys() []UsageKey { return []UsageKey{ByAgent, ByModel, ByUser, ByDay} }

// Valid reports whether k is a key.
func (k UsageKey) Valid() bool { return slices.Contains(UsageKeys(), k) }

// UsageQuery asks for sums. Everything of a run counts for the time at which
// it began; what belongs to no run, for when its session was created.
type UsageQuery struct {
	By UsageKey
	// From and To bound the time, in ms since the epoch: From <= t < To; 0: no
	// bound.
	From, To  int64
	UserID    string // empty: all
	Tenant    string // of the tree's root; empty: all
	AgentType string // empty: all
	SessionID string // of a root: with all below it; empty: all
	Visible   Visible
}

// UsageReport is sums by key, and of all.
type UsageReport struct {
	By    UsageKey   `json:"by"`
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"` // its key is empty
}

// UsageRow is what was used under one key.
type UsageRow struct {
	Key      string `json:"key"`
	Sessions int    `json:"sessions"` // that have used something
	Runs     int    `json:"runs"`     // that have used something
	Used
	// CostUSD is what the tokens cost by the prices that are known now.
	CostUSD float64 `json:"costUsd"`
	// Unpriced are models that were used and have no price: CostUSD lacks
	// their part.
	Unpriced []string `json:"unpriced,omitempty"`
}

// Price is what a model's tokens cost, in USD per million.
type Price struct {
	Input, Output float64
	// CachedInput and CacheWrite are of prompt tokens read from and written to
	// the provider's cache; nil: as Input.
	CachedInput, CacheWrite *float64
	// Reasoning is of completion tokens that are reasoning; nil: as Output.
	Reasoning *float64
}

// Cost returns what tokens cost, in USD.
func (p Price) Cost(t eventlog.TokenUsage) float64 {
	or := func(price *float64, otherwise float64) float64 {
		if price == nil {
			return otherwise
		}
		return *price
	}
	plain := max(t.Prompt-t.Cached-t.CacheWrite, 0) // Prompt includes both
	sum := float64(plain)*p.Input + float64(t.Cached)*or(p.CachedInput, p.Input) +
		float64(t.CacheWrite)*or(p.CacheWrite, p.Input) +
		float64(max(t.Completion-t.Reasoning, 0))*p.Output + float64(t.Reasoning)*or(p.Reasoning, p.Output)
	return sum / 1e6
}
