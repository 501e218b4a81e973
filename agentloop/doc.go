// Package agentloop runs agents over a log.
//
// The heart is [Decide], a pure function from a folded state to what has to
// be done next. The shell around it performs that (asks the model, runs a
// tool, commits a step), appends what happened, folds it, and decides again.
// A resumed run, a run taken over after a crash and a fresh run are the same
// code, started from the state that the log has.
//
//	          .-> Truncate        orphans of a crash or a failed model call
//	          |
//	Decide ---+-> CallModel       step_start, deltas, then fact model_turn
//	  ^       +-> RunCall         tool_start, events, then patches + fact tool_result + tool_end
//	  |       +-> CommitStep      step_end, step_committed, checkpoint_created
//	 fold     +-> Remind          a hidden user message
//	  |       +-> Finish, Fail    output, fact run_ended, end of the stream
//	  '-- log <-'
//
// What a crash leaves behind is decided by the log alone: a recorded model
// turn is not asked for again, a finished call is not run again, and chunks
// that nobody will finish are struck by a marker before the work is done anew.
// A tool's side effects are not exactly-once; its idempotency key, which stays
// the same however often the call is executed, lets the tool make them so.
//
// Not promised: that a tool which ignores its context is stopped.
package agentloop
