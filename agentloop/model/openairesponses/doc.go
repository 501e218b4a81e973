// Package openairesponses calls models over OpenAI's Responses API.
//
// It promises that an answer is complete: a stream that ends without saying so
// is an error that can be retried, however orderly its connection closed. The
// API is asked to store nothing: each call carries the conversation, with the
// model's reasoning as it came, encrypted, in its place. What another
// provider's model thought is left out.
//
// It does not retry, does not log, and reads no OPENAI_* environment variable:
// what is not in [Options] is not sent.
package openairesponses
