package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// phrase is a decision in words.
type phrase struct{ did, do, what string }

func (d phrase) past() string  { return strings.TrimSpace(d.did + " " + d.what) }
func (d phrase) would() string { return strings.TrimSpace("would " + d.do + " " + d.what) }

var (
	interrupts = phrase{"interrupted", "interrupt", "the run"}
	resumes    = phrase{"resumed", "resume", "the sub-agent"}
	recalls    = phrase{"asked", "ask", "what the agent remembers"}
	stops      = phrase{"handed a stop on to", "hand a stop on to", "the session"}
)

// maxWords is how much of a text a description shows, in bytes.
const maxWords = 200

func short(s string) string {
	if len(s) > maxWords {
		return shorten.Text(s, maxWords) + "…"
	}
	return s
}

func asks(step int) phrase    { return phrase{"asked", "ask", fmt.Sprintf("the model for step %d", step)} }
func commits(step int) phrase { return phrase{"committed", "commit", fmt.Sprintf("step %d", step)} }
func tells(text string) phrase {
	return phrase{"sent", "send", fmt.Sprintf("the model %q", short(text))}
}

func truncates(reason eventlog.ResyncReason) phrase {
	return phrase{"truncated", "truncate", fmt.Sprintf("unfinished records (%s)", reason)}
}

func suspends(status fact.RunStatus) phrase {
	return phrase{"suspended", "suspend", fmt.Sprintf("the run (%s)", status)}
}

func completes(output json.RawMessage, structured bool) phrase {
	kind := "output"
	if structured {
		kind = "structured output"
	}
	return phrase{"completed", "complete", fmt.Sprintf("the run with the %s %s", kind, short(string(plain(output))))}
}

func fails(code, message string) phrase {
	what := "the run: " + code
	if message != "" {
		what += " (" + short(message) + ")"
	}
	return phrase{"failed", "fail", what}
}

func closesChild(tool string) phrase {
	return phrase{"took", "take", fmt.Sprintf("the output of the sub-agent of %s", tool)}
}

func closesCall(tool, code string) phrase {
	if code == "" {
		return phrase{"took", "take", fmt.Sprintf("the answer to %s", tool)}
	}
	return phrase{"ended", "end", fmt.Sprintf("%s with %s", tool, code)}
}

func goes(tool string, w decide.RouteKind, code string) phrase {
	switch w {
	case decide.RouteRefuse:
		return phrase{"refused", "refuse", fmt.Sprintf("%s: %s", tool, code)}
	case decide.RouteFinish:
		return phrase{"took", "take", fmt.Sprintf("the structured output by %s", tool)}
	case decide.RouteSubAgent:
		return phrase{"handed a task to", "hand a task to", "the sub-agent of " + tool}
	case decide.RouteRemote, decide.RouteHasStarted:
		return phrase{"handed a task to", "hand a task to", "the remote agent of " + tool}
	case decide.RouteCompanion:
		return phrase{"ran", "run", "the companion tool " + tool}
	case decide.RouteClient:
		return phrase{"waited for", "wait for", "a client to execute " + tool}
	case decide.RouteApproval:
		return phrase{"asked for", "ask for", "approval of " + tool}
	}
	return phrase{"executed", "execute", tool}
}

// today says what would be done for a session now, or for a call of it if that
// is what would be done.
func (v *verifier) today(s *projector.Session, call string) string {
	shown := v.shown()
	var all, mine []string
	for _, e := range v.decider(func(key string) bool { return shown[key] }).Decide(v.tree) {
		if e.About() != s.SessionID {
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
func (v *verifier) words(s *projector.Session, e decide.Effect) (said, call string) {
	run := func(c projector.Call) (string, string) {
		route := v.route(s, c)
		return goes(c.Name, route.Kind, route.Code).would(), c.ID
	}
	switch e := e.(type) {
	case decide.CallModel:
		return asks(e.Step).would(), ""
	case decide.Recall:
		return recalls.would(), ""
	case decide.RunCall:
		return run(e.Call)
	case decide.RunCompanion:
		return run(e.Call)
	case decide.AwaitDeadline:
		return "would wait for the sub-agent of " + e.Call.Name, e.Call.ID
	case decide.CloseCall:
		if e.Call.Pending.Kind == fact.PendingChild {
			return closesChild(e.Call.Name).would(), e.Call.ID
		}
		return closesCall(e.Call.Name, "").would(), e.Call.ID
	case decide.SaveWorkspace:
		return "would save the workspace", ""
	case decide.Truncate:
		return truncates(e.Reason).would(), ""
	case decide.CommitStep:
		return commits(e.Step.Number).would(), ""
	case decide.Tell:
		return tells(e.Text).would(), ""
	case decide.ResumeChild:
		return resumes.would(), ""
	case decide.StopChild:
		return stops.would(), ""
	case decide.Suspend:
		return suspends(e.Status).would(), ""
	case decide.Interrupt:
		return interrupts.would(), ""
	case decide.Finish:
		return completes(e.Output, e.Structured).would(), ""
	case decide.Fail:
		return fails(e.Code, e.Message).would(), ""
	}
	return fmt.Sprintf("would do %T", e), ""
}
