// Package timeline folds a log into what happened when: spans on a lane for
// each session of the tree, and marks.
//
// Like the fold of the state, [Timeline.Apply] is pure and total: it knows no
// clock and no network, takes every record, struck ones too, and ignores those
// at or before its head. Tokens become one span for each block that they stand
// in, so that a timeline is small where its log is long.
//
// Nothing is ever taken out of a timeline. What truncation strikes stays and
// says so; a span of which a part is struck becomes several. The id of a span
// is for ever, and [Timeline.Since] tells what is new or has changed, so that
// whoever has a timeline merges the news by id.
//
//	span        from                     to
//	run         run_requested            run_ended, or the next run's request
//	step        step_start               step_committed; attempts go on with it, and say so (discarded)
//	user        user_message             the same
//	text        first delta of a block   the next thing that the lane says
//	reasoning   the same
//	tool        tool_start               tool_result
//	approval    call_suspended           result_submitted: how long a person took
//	client_tool call_suspended           result_submitted
//	child       the call of a sub-agent  tool_result
//	suspended   what stops the session   what goes on with it
//	custom      a custom event           the last one of its name without others between
//	outside     what a producer outside of runs wrote, as long as nothing else comes
//
// Arguments of a tool call, as the model writes them, are a text with the
// call's id. The times are those that the records' writers gave.
package timeline
