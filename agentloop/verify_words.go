package agentloop

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// deed is a decision in words.
type deed struct{ did, do, what string }

func (d deed) past() string  { return strings.TrimSpace(d.did + " " + d.what) }
func (d deed) would() string { return strings.TrimSpace("would " + d.do + " " + d.what) }

var (
	interrupts = deed{"interrupted", "interrupt", "the run"}
	resumes    = deed{"resumed", "resume", "the sub-agent"}
	recalls    = deed{"asked", "ask", "what the agent remembers"}
	stops      = deed{"handed a stop on to", "hand a stop on to", "the session"}
)

// maxWords is how much of a text a description shows, in bytes.
const maxWords = 200

func short(s string) string {
	if len(s) > maxWords {
		return cutTo(s, maxWords) + "…"
	}
	return s
}

func asks(step int) deed    { return deed{"asked", "ask", fmt.Sprintf("the model for step %d", step)} }
func commits(step int) deed { return deed{"committed", "commit", fmt.Sprintf("step %d", step)} }
func tells(text string) deed {
	return deed{"told", "tell", fmt.Sprintf("the model %q", short(text))}
}

func strikes(reason eventlog.ResyncReason) deed {
	return deed{"struck", "strike", fmt.Sprintf("what was left unfinished (%s)", reason)}
}

func suspends(status eventlog.RunStatus) deed {
	return deed{"suspended", "suspend", fmt.Sprintf("the run (%s)", status)}
}

func completes(output json.RawMessage, structured bool) deed {
	kind := "output"
	if structured {
		kind = "structured output"
	}
	return deed{"completed", "complete", fmt.Sprintf("the run with the %s %s", kind, short(string(plain(output))))}
}

func fails(code, message string) deed {
	what := "the run: " + code
	if message != "" {
		what += " (" + short(message) + ")"
	}
	return deed{"failed", "fail", what}
}

func closesChild(tool string) deed {
	return deed{"took", "take", fmt.Sprintf("what the sub-agent of %s said", tool)}
}

func closesCall(tool, code string) deed {
	if code == "" {
		return deed{"took", "take", fmt.Sprintf("the answer to %s", tool)}
	}
	return deed{"ended", "end", fmt.Sprintf("%s with %s", tool, code)}
}

func goes(tool string, w way, code string) deed {
	switch w {
	case wayRefuse:
		return deed{"refused", "refuse", fmt.Sprintf("%s: %s", tool, code)}
	case wayFinish:
		return deed{"took", "take", fmt.Sprintf("the structured output by %s", tool)}
	case waySubAgent:
		return deed{"handed a task to", "hand a task to", "the sub-agent of " + tool}
	case wayRemote, wayHasStarted:
		return deed{"handed a task to", "hand a task to", "the remote agent of " + tool}
	case wayCompanion:
		return deed{"ran", "run", "the companion tool " + tool}
	case wayClient:
		return deed{"waited for", "wait for", "a client to execute " + tool}
	case wayApproval:
		return deed{"asked for", "ask for", "approval of " + tool}
	}
	return deed{"executed", "execute", tool}
}

// today says what would be done for a session now, or for a call of it if that
// is what would be done.
func (v *verifier) today(s *projector.Session, call string) string {
	shown := v.shown()
	var all, mine []string
	for _, e := range v.decider(func(key string) bool { return shown[key] }).decide(v.tree) {
		if e.about() != s.SessionID {
			continue
		}
		said, about := v.words(s, e)
		if all = append(all, said); call != "" && about == call {
			mine = append(mine, said)
		}
	}
	switch {
	case len(mine) > 0:
		all = mine
	case len(all) == 0:
		return "would do nothing here"
	}
	return strings.Join(all, " and ")
}

// words says what an effect does, and to which call.
func (v *verifier) words(s *projector.Session, e Effect) (said, call string) {
	run := func(c projector.Call) (string, string) {
		way := v.route(s, c)
		return goes(c.Name, way.way, way.code).would(), c.ID
	}
	switch e := e.(type) {
	case CallModel:
		return asks(e.Step).would(), ""
	case Recall:
		return recalls.would(), ""
	case RunCall:
		return run(e.Call)
	case RunCompanion:
		return run(e.Call)
	case AwaitDeadline:
		return "would wait for the sub-agent of " + e.Call.Name, e.Call.ID
	case CloseCall:
		if e.Call.Pending.Kind == eventlog.PendingChild {
			return closesChild(e.Call.Name).would(), e.Call.ID
		}
		return closesCall(e.Call.Name, "").would(), e.Call.ID
	case SaveWorkspace:
		return "would save the workspace", ""
	case Truncate:
		return strikes(e.Reason).would(), ""
	case CommitStep:
		return commits(e.Step.Number).would(), ""
	case Tell:
		return tells(e.Text).would(), ""
	case ResumeChild:
		return resumes.would(), ""
	case StopChild:
		return stops.would(), ""
	case Suspend:
		return suspends(e.Status).would(), ""
	case Interrupt:
		return interrupts.would(), ""
	case Finish:
		return completes(e.Output, e.Structured).would(), ""
	case Fail:
		return fails(e.Code, e.Message).would(), ""
	}
	return fmt.Sprintf("would do %T", e), ""
}
