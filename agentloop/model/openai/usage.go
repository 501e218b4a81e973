package openai

import (
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// tokenCounts are the counts as servers send them.
type tokenCounts struct {
	PromptTokens            provider.Count `json:"prompt_tokens"`
	CompletionTokens        provider.Count `json:"completion_tokens"`
	TotalTokens             provider.Count `json:"total_tokens"`
	CompletionTokensDetails struct {
		ReasoningTokens provider.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	PromptTokensDetails struct {
		CachedTokens     provider.Count `json:"cached_tokens"`
		CacheWriteTokens provider.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
}

// total translates token counts; one below 0 counts as 0. OpenAI's completion tokens include reasoning;
// where a server's do not (xAI), only the total does.
func (u tokenCounts) total() fact.TokenUsage {
	out := fact.TokenUsage{
		Prompt:     int64(max(u.PromptTokens, 0)),
		Completion: int64(max(u.CompletionTokens, 0)),
		Reasoning:  int64(max(u.CompletionTokensDetails.ReasoningTokens, 0)),
		Cached:     int64(max(u.PromptTokensDetails.CachedTokens, 0)),
		CacheWrite: int64(max(u.PromptTokensDetails.CacheWriteTokens, 0)),
		Total:      int64(max(u.TotalTokens, 0)),
	}
	if sum := out.Prompt + out.Completion; out.Total > sum {
		out.Completion = out.Total - out.Prompt
	} else if out.Total == 0 {
		out.Total = sum
	}
	return out
}
