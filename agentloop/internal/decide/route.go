package decide

import (
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// RouteKind is what becomes of a tool call when it is its turn.
type RouteKind int

const (
	RouteExecute    RouteKind = iota // its function runs
	RouteRefuse                      // there is no such tool, or the arguments don't fit it
	RouteFinish                      // it is the structured output
	RouteSubAgent                    // another agent of the loop gets the task
	RouteRemote                      // another server's agent does
	RouteCompanion                   // it is about a persistent sub-agent
	RouteClient                      // it waits for a client to execute it
	RouteApproval                    // it waits for a person to approve it
	RouteHasStarted                  // another server works on it already
)

// Route is the way that a call goes.
type Route struct {
	Kind          RouteKind
	Code, Problem string // of a refusal
	Tool          *plan.Tool
	Sub           *plan.SubAgent
	Remote        *plan.RemoteAgent
}

// RouteOf returns the way that a call goes whose turn it is. Nothing but the
// agent, the call and what its gates say, whether a person must approve it,
// decides that.
func RouteOf(d *plan.Agent, call projector.Call, mustApprove func() bool) Route {
	schema, ok := d.ArgumentsOf(call.Name)
	remote := d.Remotes[call.Name]
	if remote != nil {
		if call.Pending != nil && !Gated(call) {
			return Route{Kind: RouteHasStarted, Remote: remote}
		}
		schema, ok = remote.Input, true
	}
	if !ok {
		return Route{Kind: RouteRefuse, Code: agentloop.CodeToolNotFound, Problem: fmt.Sprintf("there is no tool %q", call.Name)}
	}
	if err := plan.CheckArguments(schema, call.Arguments); err != nil {
		return Route{Kind: RouteRefuse, Code: agentloop.CodeToolInput, Problem: "invalid arguments: " + err.Error()}
	}
	switch tool := d.Functions[call.Name]; {
	case call.Pending == nil && len(d.Gates[call.Name]) > 0 && mustApprove():
		return Route{Kind: RouteApproval}
	case remote != nil:
		return Route{Kind: RouteRemote, Remote: remote}
	case d.Subs[call.Name] != nil:
		return Route{Kind: RouteSubAgent, Sub: d.Subs[call.Name]}
	case d.Companion[call.Name] != nil:
		return Route{Kind: RouteCompanion}
	case call.Name == agentloop.FinishTool:
		return Route{Kind: RouteFinish}
	case tool.Client:
		return Route{Kind: RouteClient, Tool: tool}
	default:
		return Route{Kind: RouteExecute, Tool: tool}
	}
}

// Gated reports whether a call waits for an approval, or has it and has not
// begun.
func Gated(call projector.Call) bool {
	return call.Pending != nil && call.Pending.Kind == fact.PendingApproval
}
