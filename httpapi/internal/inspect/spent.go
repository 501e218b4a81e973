package inspect

import (
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// Prices are the current prices of models' tokens.
type Prices struct {
	all atomic.Pointer[map[string]readmodel.Price]
}

// NewPrices returns prices, by the model's name.
func NewPrices(all map[string]readmodel.Price) *Prices {
	p := new(Prices)
	p.Set(all)
	return p
}

// Set replaces the prices. The caller must not change the map afterwards.
func (p *Prices) Set(all map[string]readmodel.Price) { p.all.Store(&all) }

// Cost returns the cost of a model's tokens in USD, and whether the price is known.
func (p *Prices) Cost(model string, tokens fact.TokenUsage) (usd float64, known bool) {
	price, known := (*p.all.Load())[model]
	return price.Cost(tokens), known
}

// spent returns the usage between two states of a session. It is negative if after is the
// earlier one.
func (p *Prices) spent(before, after *projector.Tree) api.Spent {
	if before.Head > after.Head {
		used := p.spent(after, before)
		used.Usage, used.DurationMs = fact.TokenUsage{}.Minus(used.Usage), -used.DurationMs
		if used.Cost != nil && *used.Cost != 0 {
			*used.Cost = -*used.Cost
		}
		return used
	}
	used := api.Spent{DurationMs: lastTime(after) - lastTime(before)}
	if before.Head == 0 {
		used.DurationMs = lastTime(after) - after.CreatedAt
	}
	prices := *p.all.Load()
	sums, cost := [2]projector.Totals{before.RollUp(before.SessionID).Totals, after.RollUp(after.SessionID).Totals}, 0.0
	used.Usage = sums[1].Tokens.Minus(sums[0].Tokens)
	for _, model := range slices.Sorted(maps.Keys(sums[1].Models)) {
		was, is := sums[0].Models[model], sums[1].Models[model]
		switch price, known := prices[model]; {
		case is.Calls == was.Calls:
		case known:
			cost += price.Cost(is.Tokens.Minus(was.Tokens))
		default:
			used.Unpriced = append(used.Unpriced, model)
		}
	}
	if len(prices) > 0 && used.Unpriced == nil && !math.IsInf(cost, 0) { // which JSON can't hold
		used.Cost = &cost
	}
	return used
}

// lastTime returns the time of a state's last record, in ms since the epoch, by the clocks
// of the writers.
func lastTime(t *projector.Tree) (at int64) {
	for _, s := range t.Sessions() {
		at = max(at, s.UpdatedAt)
	}
	return at
}
