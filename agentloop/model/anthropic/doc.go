// Package anthropic calls models over Anthropic's Messages API.
//
// It promises that an answer is complete: a stream that ends without a
// stop_reason or a message_stop is an error that can be retried, however orderly
// its connection closed. Thinking goes back to the model as it came, with its signature and in
// its place, redacted thinking too: the API refuses what was changed. What
// another provider's model thought is left out.
//
// It does not retry, does not log, and reads no ANTHROPIC_* environment
// variable and no profile: what is not in [Options] is not sent.
package anthropic
