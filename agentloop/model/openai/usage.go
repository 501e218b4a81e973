package openai

import (
	sdk "github.com/openai/openai-go/v3"

	"github.com/helixd/helixd/eventlog"
)

// usage translates token counts; one below 0 counts as 0. OpenAI's completion tokens include reasoning;
// where a server's do not (xAI), only the total does.
func usage(u sdk.CompletionUsage) eventlog.TokenUsage {
	out := eventlog.TokenUsage{
		Prompt:     max(u.PromptTokens, 0),
		Completion: max(u.CompletionTokens, 0),
		Reasoning:  max(u.CompletionTokensDetails.ReasoningTokens, 0),
		Cached:     max(u.PromptTokensDetails.CachedTokens, 0),
		CacheWrite: max(u.PromptTokensDetails.CacheWriteTokens, 0),
		Total:      max(u.TotalTokens, 0),
	}
	if sum := out.Prompt + out.Completion; out.Total > sum {
		out.Completion = out.Total - out.Prompt
	} else if out.Total == 0 {
		out.Total = sum
	}
	return out
}
