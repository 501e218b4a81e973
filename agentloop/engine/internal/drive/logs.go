package drive

import (
	"context"
	"log/slog"

	"github.com/helixd/helixd/eventlog"
)

// Messages of the logger about calls. Their attributes are session (which owns the call),
// run, call and tool, and never arguments or results.
const (
	logSuspended        = "client_tool.suspended"         // a call waits for a person
	LogSubmitted        = "client_tool.submitted"         // with status: what became of a submission
	LogTimeout          = "client_tool.timeout"           // its deadline has passed
	logAborted          = "client_tool.aborted"           // the run's end has closed it
	LogValidationFailed = "client_tool.validation_failed" // what was submitted does not fit the tool
	LogOwnershipRetry   = "client_tool.ownership_retry"   // a submission met other writers; with attempt
	logToolFailed       = "tool.failed"                   // with code and, if its server has failed, host, status or reason, and check
	logDispatchFailed   = "subagent.dispatch_failed"      // with code: a sub-agent could not be started
)

// log writes a message about the call.
func (c *toolCall) log(level slog.Level, event string, more ...any) {
	LogCall(context.Background(), c.r.requestLogger(), level, event, c.SessionID, c.RunID, c.ID, c.ToolName, more...)
}

// LogCall logs an event of a call of a session.
func LogCall(ctx context.Context, log *slog.Logger, level slog.Level, event, session, run, call, tool string, more ...any) {
	log.Log(ctx, level, event,
		append([]any{eventlog.LogSession, session, eventlog.LogRun, run, eventlog.LogCall, call, eventlog.LogTool, tool}, more...)...)
}
