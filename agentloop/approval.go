package agentloop

import (
	"context"
	"encoding/json"
)

// Approval requires that a person approves calls of some of an agent's tools,
// whatever executes them: a function, an MCP server, a sub-agent, a remote agent,
// a companion tool. It is added to the tools' own [Tool.RequireApproval]: a call
// waits if one of them requires it.
//
// Nothing waits in memory. A call that waits is the record call_suspended, made by
// toolCall.suspended in engine/internal/drive/call_records.go. The answer is the record
// result_submitted, stored by Loop.Submit of package engine.
type Approval struct {
	// Tools is the name of a tool as the model calls it, or a pattern of
	// [path.Match], such as files_* or subagent__*. It must match a tool, and
	// none that is client-executed or finishes the turn. __finish__, which does
	// nothing, is not matched.
	Tools string
	// Require decides of each call; see [Tool.RequireApproval]. nil: all calls.
	Require Gate
}

// Gate decides whether a person must approve a call before it is executed. An
// error or a panic counts as yes.
type Gate func(ctx context.Context, c *Call, args json.RawMessage) (bool, error)
