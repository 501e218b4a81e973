package anthropic

import (
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// cache marks where the provider keeps the prompt so far, four times at most: after the
// tools, the system prompt, the user's last message and the one before. The
// mark before the last is where the call before this one had its last: the API
// looks back over twenty blocks only.
func cache(p *sdk.MessageNewParams, ttl time.Duration) {
	mark := sdk.CacheControlEphemeralParam{TTL: sdk.CacheControlEphemeralTTLTTL5m}
	if ttl == LongCache {
		mark.TTL = sdk.CacheControlEphemeralTTLTTL1h
	}
	if n := len(p.Tools); n > 0 {
		*p.Tools[n-1].GetCacheControl() = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	marks := 0
	for i := len(p.Messages) - 1; i >= 0 && marks < 2; i-- {
		blocks := p.Messages[i].Content
		if p.Messages[i].Role != sdk.MessageParamRoleUser || len(blocks) == 0 {
			continue
		}
		if at := blocks[len(blocks)-1].GetCacheControl(); at != nil {
			*at = mark
			marks++
		}
	}
}
