// Package timeline folds a log into what happened when: spans on a lane for
// each session of the tree, and marks.
//
// Like the fold of the state, [Timeline.Apply] is pure and total: it knows no
// clock and no network, takes every record, truncated ones too, and ignores those
// at or before its head. Tokens become one span for each block that they are
// in, so that a timeline is much smaller than its log.
//
// Nothing is ever removed from a timeline. Truncated spans stay and are
// marked as truncated; a span of which a part is truncated becomes several. The id of a span
// never changes, and [Timeline.Since] returns new and changed spans, so that
// a client that has a timeline merges the changes by id.
//
//	span        from                     to
//	run         run_requested            run_ended, or the next run's request
//	step        step_start               step_committed; attempts continue with it, and say so (discarded)
//	user        user_message             the same
//	text        first delta of a block   the next thing that the lane says
//	reasoning   the same
//	tool        tool_start               tool_result
//	approval    call_suspended           result_submitted: how long a person took
//	client_tool call_suspended           result_submitted
//	child       the call of a sub-agent  tool_result
//	suspended   what stops the session   what continues with it
//	custom      a custom event           the last one of its name without others between
//	outside     what a producer outside of runs wrote, as long as nothing else comes
//
// Arguments of a tool call, as the model writes them, are a text with the
// call's id. The times are those that the records' writers gave.
package timeline
