// Package responses serves clients of the OpenAI Responses and Conversations APIs.
//
// It has no store. A response is a run of a session, and a conversation is a session. The
// events of a response are a fold of the run's records, so that each has the same
// sequence_number whenever, and on whichever node, it is read.
//
// Programs use its [Options]; the rest is for package httpapi.
package responses
