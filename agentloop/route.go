package agentloop

import (
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// way is what becomes of a tool call when it is its turn.
type way int

const (
	wayExecute    way = iota // its function runs
	wayRefuse                // there is no such tool, or the arguments don't fit it
	wayFinish                // it is the structured output
	waySubAgent              // another agent of the loop gets the task
	wayRemote                // another server's agent does
	wayCompanion             // it is about a persistent sub-agent
	wayClient                // it waits for a client to execute it
	wayApproval              // it waits for a person to approve it
	wayHasStarted            // another server works on it already
)

// route is the way that a call goes.
type route struct {
	way           way
	code, problem string // of a refusal
	tool          *tool
	sub           *subAgent
	remote        *remoteAgent
}

// routeOf returns the way that a call goes whose turn it is. Nothing but the
// agent, the call and what its gates say, whether a person must approve it,
// decides that.
func routeOf(d *definition, call projector.Call, mustApprove func() bool) route {
	schema, ok := d.argumentsOf(call.Name)
	remote := d.remotes[call.Name]
	if remote != nil {
		if call.Pending != nil && !gated(call) {
			return route{way: wayHasStarted, remote: remote}
		}
		schema, ok = remote.input, true
	}
	if !ok {
		return route{way: wayRefuse, code: CodeToolNotFound, problem: fmt.Sprintf("there is no tool %q", call.Name)}
	}
	if err := checkArguments(schema, call.Arguments); err != nil {
		return route{way: wayRefuse, code: CodeToolInput, problem: "invalid arguments: " + err.Error()}
	}
	switch tool := d.tools[call.Name]; {
	case call.Pending == nil && len(d.gates[call.Name]) > 0 && mustApprove():
		return route{way: wayApproval}
	case remote != nil:
		return route{way: wayRemote, remote: remote}
	case d.subs[call.Name] != nil:
		return route{way: waySubAgent, sub: d.subs[call.Name]}
	case d.companion[call.Name] != nil:
		return route{way: wayCompanion}
	case call.Name == FinishTool:
		return route{way: wayFinish}
	case tool.Client:
		return route{way: wayClient, tool: tool}
	default:
		return route{way: wayExecute, tool: tool}
	}
}

// gated reports whether a call waits for an approval, or has it and has not
// begun.
func gated(call projector.Call) bool {
	return call.Pending != nil && call.Pending.Kind == eventlog.PendingApproval
}
