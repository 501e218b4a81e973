// Package openai calls models over the Chat Completions API: OpenAI's own and
// the many that speak it.
//
// It promises that an answer is complete: a stream that ends without a
// finish_reason and without [DONE] is an error that can be retried, however
// orderly its connection closed. It does not retry, does not log, and reads no
// OPENAI_* environment variable: what is not in [Options] is not sent.
//
// It reads more than OpenAI sends, since servers that call themselves
// compatible differ: reasoning in the fields reasoning_content and reasoning,
// tool calls whose index does not begin at 0, errors inside the stream, and
// usage whose completion tokens leave reasoning out.
package openai
