// Package mcptool makes agent tools of the tools of an MCP server, one that is
// run as a command (stdio) or one behind a URL (streamable HTTP).
//
// # Tools
//
// A server's tool is named {server}_{tool}. Characters that a tool's name must
// not have become _, and a name that is too long ends in a hash. Two tools of
// one name, and a reserved name, are errors of [Open]. Descriptions and input
// schemas are passed on. A schema that can't be used here (an unknown draft, a
// pattern that Go's regexp lacks, a reference to elsewhere or without an end) does not cost the
// tool: it takes any object then, the model reads the schema in the
// description, the server judges the arguments, and a warning is logged.
//
// The list is that of the opening. A server that says that its list has
// changed is logged and the list left alone. Over HTTP that is only heard in
// the answer to a call: no stream is kept open for it, since the SDK ends a
// session whose idle stream is cut again and again, with the calls in flight.
//
// # Calls
//
// A call is tools/call with the arguments as the model gave them, and the
// call's idempotency key in _meta as [MetaIdempotencyKey]. The end of its
// context cancels the request at the server. The result is structuredContent;
// without it the text, joined by line ends; without text the content list as MCP writes it.
// isError makes its text the tool's error. Integers beyond 2^53 in
// structuredContent keep their digits if the server repeats it as text, as MCP
// recommends. The server's progress becomes custom events named
// [ProgressEvent], the newest at most every 200 ms.
//
// # When a server dies
//
//	open --connection ends--> down --next call--> connecting --> open
//	                           ^                       |
//	                           '------- failed --------'
//
// A call in flight fails, since it is not known whether it was carried out. The
// next call starts the command again, or begins a new HTTP session; so does a
// call that found the connection dead before its request was sent. There is
// one attempt at a time. Attempts without an answered call in between are 250
// ms apart, then twice that, up to 30 s; calls fail at once meanwhile.
//
// # What a server gets and what it can do
//
// A command inherits PATH, HOME and LANG and what its configuration adds,
// nothing else. It runs in its own process group, so that a terminal's
// Ctrl-C stops it when its calls have been stopped and not before. What it
// writes to stderr is dropped. It is stopped by closing its stdin, then by
// SIGTERM, then by SIGKILL: only the command itself, not its child processes. Servers
// are offered neither roots, sampling nor elicitation: their requests other than
// pings are refused, and a server that does not read the answers is cut off. A message has at most
// 16 MiB, as all tools together have; a longer one ends the session. HTTP redirects are not followed.
//
// Not promised: that a call is carried out once; the key lets the server see
// to that.
package mcptool
