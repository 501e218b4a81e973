// Package uimessage shows a session to clients of the Vercel AI SDK: one UI
// message a user message, one an assistant turn, with tool results merged into
// the parts of their calls.
//
// It does so twice. [Render] makes messages of a folded state, [Encoder] a UI
// message stream of records. A client that has read a message's stream to its
// end has the message that Render makes.
//
// # Cuts
//
// A stream can be cut anywhere and resumed (aisdk.md). The rule is one: what
// the client's cursor covers is never sent again, what it does not cover is
// always sent. So an encoder is given the message's records from the first one
// on, says nothing of those that the client has, and goes on from there. Three
// things make that exact:
//
//   - A record's sequence is the SSE id of its last frame only: who is cut off
//     in between gets the record's frames again. All of them but one can be
//     read twice; a text-start that is read twice leaves an empty part.
//   - A block that is open at the cut is opened again, right before its next
//     delta: a delta without its start is an error to clients. What was
//     delivered is a part of its own then, with the same text in all.
//   - Names depend on the message only, not on where a stream began: blocks are
//     numbered over the whole message.
//
// Struck records are left out by who calls the encoder. A client that saw them
// gets data-stream-resync, and is equal after it has loaded the snapshot.
package uimessage
