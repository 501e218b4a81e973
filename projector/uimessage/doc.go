// Package uimessage shows a session to clients of the Vercel AI SDK as UI messages: one for each
// user message and one for each assistant turn, with tool results merged into the parts of their
// calls.
//
// It does so twice. [Render] makes messages of a folded state, [Encoder] a UI
// message stream of records. A client that has read a message's stream to its
// end has the message that Render makes.
//
// # Cuts
//
// A stream can be cut after any frame and resumed. There is one rule:
// frames that the client's cursor covers are never sent again, all others
// are always sent. An encoder is therefore given the message's records from the
// first one on, and the caller drops the frames that the cursor covers. Two
// things make that exact:
//
//   - A record makes the same frames in every response. The one exception is a
//     call that was answered since: the client must not be asked again.
//   - Names depend on the message only, not on where a stream began: blocks are
//     numbered over the whole message.
//
// Parts that are open at the cut are not opened again: the client has kept
// them. [Encoder.Reopen] is for clients that have the content from a snapshot
// instead.
//
// The caller leaves out truncated records. A client that saw them gets
// data-stream-resync, and equals all others after it has loaded the snapshot.
// After a truncated fact blocks are numbered from its sequence: a client has the
// same names for what follows whether it saw the truncated blocks or not.
package uimessage
