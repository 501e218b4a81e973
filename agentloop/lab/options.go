package lab

import (
	"context"
	"encoding/json"
	"path"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Options are what is tried on which sessions. Zero values mean the defaults.
type Options struct {
	Name   string // of the cohort, for the report
	Cohort *cohort.Cohort
	// Candidate are the agents that are tried, Baseline those that were recorded. Without a baseline
	// the records are compared with; they have no prompts and no tools, so a changed prompt is then
	// seen only by what it does.
	Candidate, Baseline []Agent
	// Live has the models of agents asked whose request was not recorded, as far as it is known:
	// without a baseline, all of them.
	Live bool
	// Script answers requests first.
	Script []Rule
	// Unmatched says what happens to a call that has no recorded result. Empty: Refuse.
	Unmatched Unmatched
	Simulate  []Simulation
	// Safe are tools without side effects, which Allow executes. LiveTools are executed by Allow
	// too, whatever they do.
	Safe, LiveTools []string

	Rules  result.Rules
	Judge  Judge           // nil: none
	Labels map[string]bool // people's, by session: whether the recorded session is good
	// Repeat is how often the lanes are driven; 0: once.
	Repeat int
	// Parallel is how many sessions are driven at once; 0: as many as there are processors.
	Parallel int
	// SessionTime bounds a lane; 0: DefaultSessionTime, or DefaultLiveTime.
	SessionTime time.Duration
	// Budget bounds what the lab itself spends. Sessions that are left then are not judged.
	Budget Budget
	// Prices are what models' tokens cost, by the model's name.
	Prices map[string]readmodel.Price
	// Log keeps the lab as a session, and the lanes that differ as sessions beside it, so that a lab
	// that dies continues and people can look at it; nil: nothing is kept. People's labels are read
	// from it, too. State names everything that the results depend on: a lab of another state is
	// another one.
	Log   eventlog.Log
	State string
	// Taken, if set, reports whether a session's id is taken where the lab is copied to: a lab that
	// begins gets another one then.
	Taken func(ctx context.Context, id string) (bool, error)
	// Progress, if set, is called after each session.
	Progress func(done, sessions int)
}

// Agent is an agent of a lane.
type Agent struct {
	agentloop.Agent
	// ModelID names the model with all its settings; empty: the model's own name.
	ModelID string
	// Scripted: the agent's own model answers, always. It is a script, and costs nothing.
	Scripted bool
}

// Agents are agents whose models are named by themselves.
func Agents(agents ...agentloop.Agent) []Agent {
	out := make([]Agent, len(agents))
	for i, a := range agents {
		out[i] = Agent{Agent: a, ModelID: model.NameOf(a.Model)}
	}
	return out
}

// DefaultSessionTime bounds a lane, DefaultLiveTime one whose models are live.
const (
	DefaultSessionTime = 30 * time.Second
	DefaultLiveTime    = 10 * time.Minute
)

// Budget bounds what the lab spends on live models and judges; 0 is no bound.
type Budget struct {
	Tokens int64
	Cost   float64 // by the prices
	Time   time.Duration
}

// Unmatched says what happens to a call without a recorded result.
type Unmatched string

// What may happen to a call without a recorded result.
const (
	Refuse       Unmatched = "refuse"   // the lane ends
	SimulateCall Unmatched = "simulate" // a rule gives the result; without one the lane ends
	Allow        Unmatched = "allow"    // it is executed, if it is safe or named; otherwise the lane ends
)

// Simulation is a rule for the results of calls that were not recorded.
type Simulation struct {
	Tool string `json:"tool"` // a name, or a pattern of path.Match
	// Arguments are members that the call's arguments must have; empty: any.
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     string          `json:"error"` // if set, the call fails with it
}

func (s Simulation) fits(tool string, arguments json.RawMessage) bool {
	if ok, err := path.Match(s.Tool, tool); err != nil || !ok {
		return false
	}
	var want, have map[string]json.RawMessage
	if len(s.Arguments) == 0 {
		return true
	}
	if json.Unmarshal(s.Arguments, &want) != nil || json.Unmarshal(arguments, &have) != nil {
		return false
	}
	for name, v := range want {
		if string(result.Canonical(v)) != string(result.Canonical(have[name])) {
			return false
		}
	}
	return true
}

// Rule is a part of a script: the answers of an agent to conversations that contain a text.
type Rule struct {
	Agent string // empty: all
	When  string // is part of the last user message that is not hidden from users; empty: any
	Turns []scripted.Turn
}
