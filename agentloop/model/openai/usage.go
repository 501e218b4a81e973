package openai

import (
	sdk "github.com/openai/openai-go/v3"

	"github.com/helixd/helixd/eventlog"
)

// usage translates token counts. OpenAI's completion tokens include reasoning;
// where a server's do not (xAI), only the total does.
func usage(u sdk.CompletionUsage) eventlog.TokenUsage {
	out := eventlog.TokenUsage{
		Prompt:     u.PromptTokens,
		Completion: u.CompletionTokens,
		Reasoning:  u.CompletionTokensDetails.ReasoningTokens,
		Cached:     u.PromptTokensDetails.CachedTokens,
		CacheWrite: u.PromptTokensDetails.CacheWriteTokens,
		Total:      u.TotalTokens,
	}
	if sum := out.Prompt + out.Completion; out.Total > sum {
		out.Completion = out.Total - out.Prompt
	} else if out.Total == 0 {
		out.Total = sum
	}
	return out
}
