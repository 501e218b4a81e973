package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/helixd/helixd/eventlog/fact"
)

// counts are the token counts as the API returns them: its input tokens leave out
// those that were read from or written to the cache, its output tokens include thinking.
type counts struct{ input, cached, written, output, thinking int64 }

func (c *counts) start(u sdk.Usage) {
	c.input, c.cached, c.written = u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens
	c.output, c.thinking = u.OutputTokens, u.OutputTokensDetails.ThinkingTokens
}

// delta takes over later counts, which are totals from the beginning.
func (c *counts) delta(u sdk.MessageDeltaUsage) {
	for _, field := range []struct {
		count *int64
		given bool
		value int64
	}{
		{&c.input, u.JSON.InputTokens.Valid(), u.InputTokens},
		{&c.cached, u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens},
		{&c.written, u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens},
		{&c.output, u.JSON.OutputTokens.Valid(), u.OutputTokens},
		{&c.thinking, u.JSON.OutputTokensDetails.Valid(), u.OutputTokensDetails.ThinkingTokens},
	} {
		if field.given {
			*field.count = field.value
		}
	}
}

// total translates the counts; one below 0 counts as 0.
func (c *counts) total() fact.TokenUsage {
	u := fact.TokenUsage{
		Completion: max(c.output, 0), Reasoning: max(c.thinking, 0), Cached: max(c.cached, 0), CacheWrite: max(c.written, 0),
	}
	u.Prompt = max(c.input, 0) + u.Cached + u.CacheWrite
	u.Total = u.Prompt + u.Completion
	return u
}
