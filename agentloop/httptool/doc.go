// Package httptool makes agent tools of HTTP endpoints.
//
// A call is a POST of {toolCallId, toolName, sessionId, runId, agentType,
// arguments, state} with the header Idempotency-Key, which stays the same
// however often the call is executed. The endpoint answers 2xx with
// {"result": any, "patches"?: RFC 6902 operations on the custom state,
// "events"?: [{name, data}, at most 1,000], "usage"?: {name: amount}}; usage counts as
// [agentloop.Call.RecordUsage] does. Anything else, a time-out or bad JSON is a tool
// error for the model, with at most 8 KiB of the body's text.
//
// In a trace, the header traceparent names the call's span (W3C Trace Context).
//
// It does not retry, and does not follow redirects.
package httptool
