// Package engine runs agents over a log.
//
// Package internal/decide is its core, a pure function from a folded session tree
// to what shall be under way in it now. The shell around it, which holds the tree's
// claim, begins what is missing, cancels what is not wanted any more, appends
// what happened, folds it, and decides again. A resumed run, a run taken over
// after a crash and a fresh run are the same code, started from the state that
// the log has. All agents of a tree go through the one loop, each at its own
// pace.
//
//	          .-> Recall         fact memory_recalled, once a turn
//	          +-> CallModel      step_start, deltas, then fact model_turn
//	          +-> RunCall        tool_start, events, then patches + fact tool_result + tool_end;
//	          |                  or fact call_suspended, and the call waits
//	Decide ---+-> AwaitDeadline, StopRemote
//	  ^       |
//	  |       '-> appends: Truncate, CloseCall, RunCompanion, CommitStep, Tell, ResumeChild,
//	 fold         StopChild, and what ends a run: Suspend, Interrupt, Finish, Fail
//	  |
//	  '-- log <-- others: result_submitted, interrupt_requested, run_requested
//
// What a crash leaves behind is decided by the log alone: a recorded model
// turn is not asked for again, a finished call is not run again, and chunks
// that nobody will finish are struck by a marker before the work is done anew.
// A tool's side effects are not exactly-once; its idempotency key, which stays
// the same however often the call is executed, lets the tool make them so.
//
// # Waiting
//
// A call that waits for a person, or for a sub-agent, is a record. When nothing
// of a run can move any more the run ends as suspended, and nothing of it
// stays in memory: no goroutine, no timer. An answer is a record too, the first
// one counts, and deadlines are judged by the clock of whoever submits or
// resumes. Resume begins a new run that takes up what was submitted.
//
//	           Resume                       Finish
//	.-----> running ------------------------------------> completed
//	|         |  | '---------- Fail, Abort -------------> failed <-.
//	|         |  '-- Interrupt --> interrupted -- Abort -----------+
//	|         '-- Suspend --> suspended_client_tool       --Abort--'
//	|                         suspended_step_partial
//	|                         suspended_awaiting_children
//	'-----------------------------'
//
// # Stopping
//
// A stop is a record that names the run; whichever process drives it meets it
// at once. An interrupt cuts a model's answer off, lets running tools come to
// their end, and can be resumed, also from the checkpoint that it writes; an abort
// cuts off everything. Both go to the sub-agents first.
//
// A step that has begun ends with step_end, or with step_discarded and the reason.
//
// # Many nodes
//
// With an [agentloop.Queue], loops on several nodes share one log. A tree that has work
// stands on a list, from before that work is appended until it is at rest; the
// list only says where to look. Who drives a tree is the last claim in its log,
// and the node that made it is asked whether it still does: if it answers, the
// tree is left to it, whatever else has happened; if it is silent, the next node
// claims, and the log fences the one that wakes up late. Every node takes every
// request: what is to be done is appended where it is asked for, and heard by
// whoever drives the tree. A node that drains lets go of its trees between two
// steps. A tree that ends process after process is failed by the count of its
// claims.
//
// # Traces
//
// With a tracer, runs, model calls and tool calls are spans of one trace a
// root session, for ever: see [TraceID]. Spans follow the records that this node
// folds. They are no part of any decision.
//
// Not promised: that a tool which ignores its context is stopped (it is left
// alone, and what it does is not recorded any more).
package engine
