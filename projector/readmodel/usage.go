package readmodel

import (
	"slices"

	"github.com/helixd/helixd/eventlog/fact"
)

// UsageKey is what usage is grouped by.
type UsageKey string

// Keys of usage.
const (
	ByAgent UsageKey = "agent" // the agent type, sub-agents' own
	ByModel UsageKey = "model" // as the provider names it; tool calls have none
	ByUser  UsageKey = "user"  // the root's userId; empty: nobody
	ByDay   UsageKey = "day"   // UTC, 2026-01-31, on which the run began
)

// UsageKeys are all keys.
func UsageKeys() []UsageKey { return []UsageKey{ByAgent, ByModel, ByUser, ByDay} }

// Valid reports whether k is a key.
func (k UsageKey) Valid() bool { return slices.Contains(UsageKeys(), k) }

// UsageQuery asks for sums. All usage of a run counts for the time at which the run
// began; usage without a run counts for the time at which its session was created.
type UsageQuery struct {
	By UsageKey
	// From and To bound the time, in ms since the epoch: From <= t < To; 0: no
	// bound.
	From, To  int64
	UserID    string // empty: all
	Tenant    string // of the tree's root; empty: all
	AgentType string // empty: all
	SessionID string // of a root, with its sub-agents; empty: all
	Visible   Visible
}

// UsageReport has sums by key, and the total.
type UsageReport struct {
	By    UsageKey   `json:"by"`
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"` // its key is empty
}

// UsageRow is the usage under one key.
type UsageRow struct {
	Key      string `json:"key"`
	Sessions int    `json:"sessions"` // with usage
	Runs     int    `json:"runs"`     // with usage
	Used
	// CostUSD is the cost of the tokens by the current prices.
	CostUSD float64 `json:"costUsd"`
	// Unpriced are models that were used and have no price: CostUSD does not include
	// them.
	Unpriced []string `json:"unpriced,omitempty"`
}

// Price is what a model's tokens cost, in USD per million.
type Price struct {
	Input, Output float64
	// CachedInput and CacheWrite are the prices of prompt tokens read from and written to
	// the provider's cache; nil: as Input.
	CachedInput, CacheWrite *float64
	// Reasoning is the price of completion tokens that are reasoning; nil: as Output.
	Reasoning *float64
}

// Cost returns what tokens cost, in USD.
func (p Price) Cost(t fact.TokenUsage) float64 {
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
