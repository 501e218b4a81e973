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

// total translates the counts; one that can't be right counts as 0.
func (c *counts) total() fact.TokenUsage {
	u := fact.TokenUsage{
		Completion: tokens(c.output), Reasoning: tokens(c.thinking), Cached: tokens(c.cached), CacheWrite: tokens(c.written),
	}
	u.Prompt = tokens(c.input) + u.Cached + u.CacheWrite
	u.Total = u.Prompt + u.Completion
	return u
}

// tokens returns a count in the range of provider.Count that is not negative, 0 in place of any other.
func tokens(n int64) int64 {
	if n < 0 || n >= 1<<53 {
		return 0
	}
	return n
}
