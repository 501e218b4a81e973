// Package projector folds a log into the state of a session tree.
//
// [Apply] is pure and total: it knows no clock and no network, every record
// leaves a valid state, and records at or before the tree's head are ignored,
// so that a duplicate changes nothing and a log may be folded in any pieces.
// A record that cannot be used is parked in the state with its sequence.
//
// The stream is the state: there is no second write of a message or of the
// custom state. What makes a part of the stream final is a commit point:
//
//	model turn recorded   the model's answer is complete (fact model_turn)
//	call suspended        a call waits for a person or a sub-agent (fact call_suspended)
//	tool result           a call is finished, with its patches (fact tool_result)
//	step committed        all calls of a step are finished (chunk step_committed)
//
// Records of outside producers need no run: their chunks count like
// others, and [Tree.Appends] says which idempotency keys were answered with
// what, even if the records were truncated since.
//
// A rollback (a truncated fact with AfterSequence) makes the tree's content
// that of an earlier record. What it can't cut from what is there, such as the
// custom state, its marker carries: see [RestoreAt]. The fold stays a fold of
// all records, truncated ones too.
//
// Chunks after the last commit point that belong to no recorded turn and no
// finished call are orphans once no node produces them any more; see
// [Tree.Orphans].
package projector
