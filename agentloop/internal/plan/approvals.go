package plan

import (
	"context"
	"encoding/json"
	"log/slog"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
)

// linkApprovals finds the gates of each tool. All tools are known.
func (d *Agent) linkApprovals() {
	d.Gates = map[string][]agentloop.Gate{}
	for name, t := range d.Functions {
		if t.RequireApproval != nil {
			d.Gates[name] = []agentloop.Gate{t.RequireApproval}
		}
	}
	for _, a := range d.Approvals {
		refuse := func(problem string) { d.refuse("requireApproval."+a.Tools, "%s", problem) }
		if a.Require == nil {
			a.Require = agentloop.AlwaysApprove
		}
		if _, err := path.Match(a.Tools, ""); err != nil {
			refuse("not a pattern of names")
			continue
		}
		var all []string
		matched := false
		for _, spec := range d.Specs {
			if spec.Name == agentloop.FinishTool {
				continue
			}
			all = append(all, spec.Name)
			if matches, _ := path.Match(a.Tools, spec.Name); !matches {
				continue
			}
			matched = true
			switch t := d.Functions[spec.Name]; {
			case t != nil && t.Client:
				refuse("it matches " + spec.Name + ", which the client executes: such a tool can't require approval")
			case t != nil && t.FinishWith:
				refuse("it matches " + spec.Name + ", which finishes the turn: such a tool can't require approval")
			}
			d.Gates[spec.Name] = append(d.Gates[spec.Name], a.Require)
		}
		if !matched {
			slices.Sort(all)
			refuse("it matches none of the agent's tools: " + strings.Join(all, ", "))
		}
	}
}

// MustApprove reports whether a person must approve a call, and whether a gate
// has looked at the call to decide that.
func (d *Agent) MustApprove(ctx context.Context, c *agentloop.Call, args json.RawMessage, log *slog.Logger) (must, judged bool) {
	gates := d.Gates[c.ToolName]
	if slices.ContainsFunc(gates, isAlways) {
		return true, false
	}
	judged = slices.ContainsFunc(gates, func(g agentloop.Gate) bool { return requires(ctx, g, c, args, log) })
	return judged, judged
}

// isAlways reports whether a gate is [agentloop.AlwaysApprove], which looks at no call.
func isAlways(g agentloop.Gate) bool {
	return reflect.ValueOf(g).Pointer() == reflect.ValueOf(agentloop.AlwaysApprove).Pointer()
}

// requires asks a gate. What fails counts as yes.
func requires(ctx context.Context, gate agentloop.Gate, c *agentloop.Call, args json.RawMessage, log *slog.Logger) (must bool) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("approval gate panicked", eventlog.LogTool, c.ToolName, "panic", p)
			must = true
		}
	}()
	must, err := gate(ctx, c, args)
	if err != nil {
		log.Warn("approval gate failed", eventlog.LogTool, c.ToolName, "error", err)
		return true
	}
	return must
}
