package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Approval requires that a person approves calls of some of an agent's tools,
// whatever executes them: a function, an MCP server, a sub-agent, a remote agent,
// a companion tool. It is added to the tools' own [Tool.RequireApproval]: a call
// waits if one of them requires it.
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

// ApprovalError reports that an [Approval] of an agent can't be used.
type ApprovalError struct {
	Agent   string
	Tools   string // the approval's
	Problem string
}

func (e *ApprovalError) Error() string {
	return fmt.Sprintf("agentloop: agent %s: approval of %s: %s", e.Agent, e.Tools, e.Problem)
}

// linkApprovals finds the gates of each tool. All tools are known.
func (d *definition) linkApprovals() error {
	d.gates = map[string][]Gate{}
	for name, t := range d.tools {
		if t.RequireApproval != nil {
			d.gates[name] = []Gate{t.RequireApproval}
		}
	}
	for _, a := range d.Approvals {
		refuse := func(problem string) error {
			return &ApprovalError{Agent: d.Name, Tools: a.Tools, Problem: problem}
		}
		if a.Require == nil {
			a.Require = AlwaysApprove
		}
		var all []string
		matched := false
		for _, spec := range d.specs {
			if spec.Name == FinishTool {
				continue
			}
			all = append(all, spec.Name)
			matches, err := path.Match(a.Tools, spec.Name)
			switch t := d.tools[spec.Name]; {
			case err != nil:
				return refuse("not a pattern of names")
			case !matches:
				continue
			case t != nil && t.Client:
				return refuse("it matches " + spec.Name + ", which the client executes: such a tool can't require approval")
			case t != nil && t.FinishWith:
				return refuse("it matches " + spec.Name + ", which finishes the turn: such a tool can't require approval")
			}
			matched = true
			d.gates[spec.Name] = append(d.gates[spec.Name], a.Require)
		}
		if !matched {
			slices.Sort(all)
			return refuse("it matches none of the agent's tools: " + strings.Join(all, ", "))
		}
	}
	return nil
}

// mustApprove reports whether a person must approve the call, and notes whether
// a gate has looked at the call to decide that.
func (t *task) mustApprove(ctx context.Context, c *Call, call projector.Call) bool {
	gates := t.def.gates[c.ToolName]
	if slices.ContainsFunc(gates, isAlways) {
		return true
	}
	c.judged = slices.ContainsFunc(gates, func(g Gate) bool { return t.requires(ctx, g, c, call) })
	return c.judged
}

// isAlways reports whether a gate is [AlwaysApprove], which looks at no call.
func isAlways(g Gate) bool {
	return reflect.ValueOf(g).Pointer() == reflect.ValueOf(AlwaysApprove).Pointer()
}

// requires asks a gate. What fails counts as yes.
func (t *task) requires(ctx context.Context, gate Gate, c *Call, call projector.Call) (must bool) {
	defer func() {
		if p := recover(); p != nil {
			t.logger().Error("approval gate panicked", eventlog.LogTool, c.ToolName, "panic", p)
			must = true
		}
	}()
	must, err := gate(ctx, c, call.Arguments)
	if err != nil {
		t.logger().Warn("approval gate failed", eventlog.LogTool, c.ToolName, "error", err)
		return true
	}
	return must
}

// approvalID identifies the question whether a call may be executed (facts 2.1).
func (t *task) approvalID(c *Call) string { return c.RunID + "::" + c.ID }

// approved returns the records that tell that a person approved a call, and how
// long it waited; none if it did not wait.
func (c *Call) approved(call projector.Call) []fact {
	if !gated(call) {
		return nil
	}
	return append([]fact{c.approvalResponse(call)}, c.waitUsage()...)
}

// gated reports whether a call waits for an approval, or has it and has not
// begun.
func gated(call projector.Call) bool {
	return call.Pending != nil && call.Pending.Kind == eventlog.PendingApproval
}
