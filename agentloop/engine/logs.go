package engine

import (
	"context"
	"log/slog"

	"github.com/helixd/helixd/eventlog"
)

// Log events of document 002 and tool.failed, as messages of [Options].Logger. Their
// attributes are session (which owns the call), run, call and tool, and never
// what was asked or answered.
//
// The document's client_tool.ownership_write_failed and ownership_clear_failed
// can't occur: who owns a call is part of the record that has it wait, and of
// the one that ends it.
const (
	logSuspended        = "client_tool.suspended"         // a call waits for a person
	logSubmitted        = "client_tool.submitted"         // with status: what became of a submission
	logTimeout          = "client_tool.timeout"           // its deadline has passed
	logAborted          = "client_tool.aborted"           // the run's end has closed it
	logValidationFailed = "client_tool.validation_failed" // what was submitted does not fit the tool
	logOwnershipRetry   = "client_tool.ownership_retry"   // a submission met other writers; with attempt
	logToolFailed       = "tool.failed"                   // with code and, if its server was not reached, host, reason and check
	logDispatchFailed   = "subagent.dispatch_failed"      // with code: a sub-agent could not be started
)

// log tells of the call.
func (c *toolCall) log(level slog.Level, event string, more ...any) {
	c.r.l.logCall(context.Background(), level, event, c.SessionID, c.RunID, c.ID, c.ToolName, more...)
}

func (l *Loop) logCall(ctx context.Context, level slog.Level, event, session, run, call, tool string, more ...any) {
	l.opts.Logger.Log(ctx, level, event,
		append([]any{eventlog.LogSession, session, eventlog.LogRun, run, eventlog.LogCall, call, eventlog.LogTool, tool}, more...)...)
}
