// Package web authorizes and decodes requests, and writes answers and events.
//
// A [Gate] knows who calls and what the caller may do, and bounds how much of this node a
// caller holds at a time. What it lets in is a [Request]: handlers read its body and its
// query strictly, and write answers and events at the client's pace.
package web
