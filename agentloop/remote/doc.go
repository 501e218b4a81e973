// Package remote is the client side of the agent server's protocol: it starts and resumes agents
// that run on another server, and follows their streams.
//
// The remote server's log is authoritative. This package keeps nothing but
// the sequence up to which it has read, and a caller that stores this sequence
// continues after it, in this process or in another one.
//
// A [Transport] speaks to the server, as package remotehttp does over HTTP; one
// Stream of it is one connection. [Follow] is the stream of a session across
// connections:
//
//	            .---- chunk: retries are refilled
//	            v   |
//	from --> Stream --- end, error -----------------> the last event
//	            ^   |
//	            |   '-- drop --> wait --> Status ---> completed or failed, and
//	            |                  ^        |  |      nothing more to read
//	            |                  '- fails-'  |
//	            '------------------------------'
//
// Promised by Follow: every event of the session once, in the order of their
// sequences, and at the end either an EndEvent, an ErrorEvent or an error. A
// stream never just stops.
//
// Not promised: that a request which was retried was carried out once. Start,
// Interrupt and Abort are idempotent on the server. A Resume with a message
// is not: its answer may be lost, and the message then sent twice.
//
// Texts of errors, the server's own included, contain no addresses, no headers
// and at most 8 KiB: transports see to that.
package remote
