// Package uimessage renders a session's state as the UI messages of the
// Vercel AI SDK: one message a user message, one an assistant turn, with tool
// results merged into the parts of their calls.
package uimessage
