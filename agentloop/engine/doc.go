// Package engine runs agents over a log.
//
//	engine             takes requests: starts, resumes, stops, submits
//	timetravel         forks sessions, and takes them back
//	admin              erases sessions, ends those that have expired, removes files that nothing uses
//	internal/request   appends what requests ask for, and has it driven
//	internal/node      which trees this node drives: claims, tickets, hand-over, suspects
//	internal/drive     performs what is decided in a tree while it is claimed
//	internal/files     opens, saves, restores and removes the files of workspaces
//	internal/record    drafts records
//	internal/tracing, internal/metrics, internal/backlog   notify others: spans, metrics, hooks
//
// The core is agentloop/internal/decide, a pure function from a folded session tree
// to the effects that must be in progress now. Package internal/drive, which holds
// the tree's claim, begins the effects that are missing, cancels those that are no
// longer wanted, appends what happened, folds it, and decides again. A resumed run,
// a run taken over after a crash and a new run are the same code, started from the
// state in the log. One loop drives all agents of a tree, each at its own pace.
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
// After a crash the log alone decides: a recorded model turn is not requested again,
// a finished call is not executed again, and chunks of an unfinished answer are
// truncated by a marker before the work is repeated.
// A tool's side effects are not exactly-once; its idempotency key, which stays
// the same however often the call is executed, lets the tool make them so.
//
// # Waiting
//
// A call that waits for a person, or for a sub-agent, is a record. When nothing
// of a run can move any more the run ends as suspended, and nothing of it
// stays in memory: no goroutine, no timer. An answer is a record too, the first
// one counts, and deadlines are judged by the clock of the node that receives the
// submission or the resume. Resume begins a new run that uses what was submitted.
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
// A stop is a record that names the run; the process that drives the run obeys at
// once. An interrupt cuts a model's answer off, lets running tools finish, and can be
// resumed, also from the checkpoint that it writes; an abort cuts off everything.
// Both stop the sub-agents first.
//
// A step that has begun ends with step_end, or with step_discarded and the reason.
//
// # Many nodes
//
// With an [agentloop.Worklist], loops on several nodes share one log. A tree that has
// work is on a list, from before that work is appended until the tree is idle; the
// list only says where to look. The last claim in a tree's log names the node that
// drives it. Another node asks that node whether it still does: if it answers, it
// keeps the tree; if it is silent, the other node claims the tree, and the log fences
// the one that wakes up late. Every node accepts every request: it appends what is to
// be done, and the node that drives the tree follows the log. A node that drains
// releases its trees between two steps. The runs of a tree that crashes process after
// process are failed, by the count of its claims.
//
// # Traces
//
// With a tracer, runs, model calls and tool calls are spans of one trace a
// root session, for ever: see [TraceID]. Spans follow the records that this node
// folds. No decision depends on them.
//
// Not promised: that a tool which ignores its context is stopped (it is left
// alone, and what it does is not recorded any more).
package engine
