// Package projector folds a log into the state of a session tree.
//
// [Apply] is pure and total. It uses no clock and no network, and every record leaves a
// valid state. It ignores records at or before the tree's head, so a duplicate changes
// nothing and a log may be folded in any pieces. A record that cannot be used is parked
// in the state with its sequence.
//
// The stream is the state: a message or the custom state is not written a second time. A
// part of the stream becomes final at a commit point:
//
//	model turn recorded   the model's answer is complete (fact model_turn)
//	call suspended        a call waits for a person or a sub-agent (fact call_suspended)
//	tool result           a call is finished, with its patches (fact tool_result)
//	step committed        all calls of a step are finished (chunk step_committed)
//
// Records of outside producers need no run: their chunks count like others.
// [Tree.Appends] has the idempotency keys and the answers that they got, even if the
// records were truncated since.
//
// A rollback (a truncated fact with AfterSequence) makes the tree's content that of an
// earlier record. Its marker carries what can't be restored by cutting lists, such as the
// custom state: see [RestoreAt]. The fold remains a fold of all records, truncated ones
// too.
//
// Chunks after the last commit point that belong to no recorded turn and no finished call
// are orphans once no node produces them any more; see [Tree.Orphans].
package projector
