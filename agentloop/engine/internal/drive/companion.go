package drive

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// companionArgs are the arguments of all companion tools; each has some of them.
type companionArgs struct {
	Agent          string  `json:"agent"`
	Name           string  `json:"name"`
	InitialMessage string  `json:"initialMessage"`
	Message        string  `json:"message"`
	Reason         string  `json:"reason"`
	TimeoutMs      float64 `json:"timeoutMs"` // an integer, in any notation
}

// maxWaitMs is the longest timeoutMs of waitForResult, in milliseconds: a day.
const maxWaitMs = 86_400_000

// companion executes a call of a companion tool, in one append. The arguments
// fit the schema. What can't be recorded is the call's failure.
func (t *task) companion(ctx context.Context, c *toolCall, call projector.Call) error {
	facts, result, problem := t.companionRecords(c, call)
	facts = append(append(c.approved(call), c.start(call)), facts...)
	switch {
	case problem != "":
		facts = append(facts, c.ended(nil, agentloop.CodeToolFailed, problem)...)
	case result != nil:
		facts = append(facts, c.ended(result, "", "")...)
	}
	err := t.append(ctx, facts...)
	if err == nil || !unrecordable(err) {
		return err
	}
	problem = shorten.Error("what the tool has done can't be recorded: " + err.Error())
	facts = append(c.approved(call), c.start(call))
	return t.append(ctx, append(facts, c.ended(nil, agentloop.CodeToolFailed, problem)...)...)
}

// companionRecords returns what a companion tool writes, and its result;
// without one the call waits.
func (t *task) companionRecords(c *toolCall, call projector.Call) (facts []record.Draft, result json.RawMessage, problem string) {
	var a companionArgs
	_ = json.Unmarshal(call.Arguments, &a)
	switch c.ToolName {
	case plan.ToolSpawnAgent:
		return t.spawnPersistent(c, a)
	case plan.ToolListChildren:
		return nil, t.listChildren(), ""
	case plan.ToolSendMessage:
		return t.sendMessage(c, a)
	case plan.ToolWaitForResult:
		id, problem := t.childNamed(a.Name)
		if problem == "" && !t.childInterrupted(id) { // one that is finished too: then it is known that its parent knows
			return []record.Draft{c.awaits(id, time.Duration(min(a.TimeoutMs, maxWaitMs))*time.Millisecond)}, nil, ""
		}
		return nil, t.childStatus(id), problem
	case plan.ToolTerminateChild:
		return t.terminate(a)
	default:
		id, problem := t.childNamed(a.Name)
		return nil, t.childStatus(id), problem
	}
}

func (t *task) spawnPersistent(c *toolCall, a companionArgs) ([]record.Draft, json.RawMessage, string) {
	p, known := t.def.Persistent[a.Agent]
	if !known {
		return nil, nil, fmt.Sprintf("there is no agent %q to start", a.Agent)
	}
	if a.Name == "" {
		t.look(func(*projector.Session) {
			for n := 1; a.Name == "" || t.taken(a.Name); n++ {
				a.Name = fmt.Sprintf("%s-%d", a.Agent, n)
			}
		})
	}
	id := projector.ChildID(t.session, "-agent-", a.Name)
	if _, problem := t.cantSpawn(id); problem != "" {
		return nil, nil, fmt.Sprintf("can't start %q: %s", a.Name, problem)
	}
	blocking := p.Mode == agentloop.Blocking
	facts := []record.Draft{c.subAgentStart(a.Agent, id)}
	if blocking {
		facts = append(facts, c.awaits(id, 0))
	}
	facts = append(facts, t.spawn(id, t.defs[a.Agent], a.InitialMessage, fact.SubSession{
		ParentSessionID: t.session, CallID: c.ID, Mode: fact.SubSessionPersistent, Name: a.Name, Blocking: blocking,
	})...)
	if blocking {
		return facts, nil, ""
	}
	return facts, decide.Encoded(decide.ChildStatus{Name: a.Name, Status: decide.StatusRunning}), ""
}

// taken reports whether a session has the id that a child of the name would
// have. The caller holds the state.
func (t *task) taken(name string) bool {
	s := t.tree.Get(projector.ChildID(t.session, "-agent-", name))
	return s != nil && s.TurnCount > 0
}

// sendMessage gives a sub-agent a further message. Its run ends where it is;
// another one continues with the message.
func (t *task) sendMessage(c *toolCall, a companionArgs) ([]record.Draft, json.RawMessage, string) {
	id, problem := t.childNamed(a.Name)
	if problem != "" {
		return nil, nil, problem
	}
	var begins, facts []record.Draft
	blocking := false
	t.look(func(*projector.Session) {
		child := t.tree.Get(id)
		switch {
		case child.Terminated:
			problem = fmt.Sprintf("sub-agent %q was terminated; it takes no message any more", a.Name)
			return
		case child.Turn != nil && decide.Aborting(child): // its run must not continue
			problem = fmt.Sprintf("sub-agent %q is being stopped for good; it takes a message when that is done", a.Name)
			return
		}
		blocking = child.Child.Blocking
		mode := fact.ModeStart
		if child.Turn != nil {
			mode = fact.ModeWithMessage
			facts = append(facts, t.host.Abandon(child)...)
		} else {
			begins = []record.Draft{c.subAgentStart(child.AgentType, id)}
		}
		if child.Running() {
			facts = append(facts, t.host.Interruption(child, "a new message")...)
		}
		run := t.host.NewRun(id, mode, []agentloop.Input{{Content: a.Message}})
		facts = append(facts, run...)
		if child.Turn != nil {
			facts = append(facts, t.host.Resumed(child, run[0].Run, mode))
		}
	})
	if problem != "" {
		return nil, nil, problem
	}
	facts = append(begins, record.About(id, facts)...)
	if blocking {
		return append(facts, c.awaits(id, 0)), nil, ""
	}
	return facts, decide.Encoded(decide.ChildStatus{Name: a.Name, Status: decide.StatusRunning}), ""
}

// terminate ends a sub-agent for good: its turn, if it has one, and its session,
// which takes no message any more.
func (t *task) terminate(a companionArgs) (facts []record.Draft, result json.RawMessage, problem string) {
	id, problem := t.childNamed(a.Name)
	if problem != "" {
		return nil, nil, problem
	}
	t.look(func(*projector.Session) {
		child, run := t.tree.Get(id), "none" // those of a fork may have none
		if child.Terminated {
			return
		}
		if last := child.CurrentRun(); last != nil {
			run = last.RunID
		}
		if child.Turn != nil {
			run = child.Turn.RunID
		}
		facts = []record.Draft{{Agent: id, Run: run, Fact: &fact.InterruptRequested{
			RunID: run, Kind: fact.StopAbort, Reason: shorten.Text(a.Reason, agentloop.MaxErrorText), Terminate: true, Base: t.host.FactBase(id),
		}}}
	})
	return facts, decide.Encoded(decide.ChildStatus{Name: a.Name, Status: decide.StatusTerminated}), ""
}
