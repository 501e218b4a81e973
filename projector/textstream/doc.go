// Package textstream encodes an assistant's message as a stream of TextStreamParts, the second
// dialect of chat streams: it reads the records of a session tree and writes sixteen types of
// events. It shares the frames and the end of a stream with package uimessage.
//
//	step_start, step_end (the root's)      start-step, finish-step
//	text_delta                             text-start, text-delta {id, text}, text-end
//	thinking                               reasoning-start, reasoning-delta, reasoning-end
//	tool_arg_stream_start, _delta, _end    tool-input-start {id, toolName}, -delta {id, delta}, -end {id}
//	tool_start, tool_approval_request      tool-call {toolCallId, toolName, input}
//	tool_end                               tool-result {toolCallId, toolName, output}
//	tool_output_error                      tool-result
//	tool_input_error                       tool-call, tool-result
//	error, not recoverable (the root's)    error {error}, once
//
// Start and End add start and finish. The dialect has no approvals, data parts,
// sources, files, patches and aborts; their chunks are left out.
//
// Decisions about what the format leaves open:
//
//   - The output of a failed call is {"error": text}. A call has one tool-call
//     and one tool-result, even if the log repeats it. If what made them is
//     truncated, the call's next execution makes them again.
//   - An input is an object. One that the model has botched, so that the call
//     is refused, is shown as {}.
//   - A sub-agent's parts have metadata.parentToolUseId, the call that began
//     its session or, for a session of an earlier message, the call that waits
//     for it. Where neither is known it is the session's id: not the root's
//     content in any case. Steps are the root's only, since start-step has no
//     place to say whose it is.
//   - Block ids are text-{n} and reasoning-{n}, counted from 0 over the message.
//     Those of a sub-agent begin with its session's id, so that ids are unique
//     and do not depend on other sub-agents.
//   - totalUsage counts the model turns of the message in the whole tree, and
//     durationMs goes from the root's first content to its last chunk, waiting
//     included. cost is what the model turns cost, if all their prices are
//     known.
//
// # Cuts
//
// Frames that the client's cursor covers are never sent again, all others always
// are. An encoder is therefore given a message's records from the first
// one on, and the caller drops the frames that the cursor covers: a record
// makes the same frames in every response. Blocks that are open at the cut are
// not opened again; [Encoder.Reopen] is for clients that have the content from
// a snapshot.
//
// Truncated records must be left out, the truncated facts must not: after one,
// the counts of its agents continue with the fact's sequence, so that no id is
// used again that a client may know from what was truncated.
package textstream
