package result

import (
	"encoding/json"
	"time"
)

// Lane is what one set of agents did with one session's inputs.
type Lane struct {
	// Decisions are what the agents decided and met, in order.
	Decisions []Decision `json:"decisions,omitempty"`
	// Outcome is the last run's status: completed, failed, interrupted, paused; "" if no run ended.
	Outcome string `json:"outcome,omitempty"`
	// Error is the code with which the last run failed; "" if it did not.
	Error string `json:"error,omitempty"`
	// Output is the text of the last answer, or the structured output as JSON.
	Output string `json:"output,omitempty"`
	// Prefix is the hash of the decisions that equal the observed ones, up to the first that does
	// not: hex SHA-256, as [Prefix] computes it.
	Prefix string `json:"prefix,omitempty"`
	Tokens Tokens `json:"tokens"`
	// Cost is in the currency of the configuration's prices; 0 if the models have none.
	Cost float64 `json:"cost,omitempty"`
	// Steps is the number of model calls that were committed.
	Steps int `json:"steps,omitempty"`
	// Latency is the time that models took, as recorded or measured; 0 for a scripted model.
	Latency time.Duration `json:"latency,omitempty"`
	// Unjudged says why the lane could not be driven to its end; "" if it was. A lane ends early if
	// a call was refused that the log does not answer. Its decisions until then count.
	Unjudged string `json:"unjudged,omitempty"`
	// Judgement is what the judge says of the lane; nil without a judge.
	Judgement *Judgement `json:"judgement,omitempty"`
}

// Tokens are counts of model calls. Cached is part of Input, Reasoning of Output.
type Tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Cached    int64 `json:"cached"`
	Reasoning int64 `json:"reasoning"`
}

// Kind is what sort of thing was decided or met.
type Kind string

// The kinds of decisions.
const (
	ModelRequest Kind = "model-request" // Name: the model
	ModelAnswer  Kind = "model-answer"  // Name: the model
	ToolCall     Kind = "tool-call"     // Name: the tool; Content: its arguments
	ToolResult   Kind = "tool-result"   // Name: the tool
	Approval     Kind = "approval"      // Name: the tool for which one was asked
	SubAgent     Kind = "sub-agent"     // Name: the agent that was called; Content: its input
	Memory       Kind = "memory"        // Name: recall, save, ...
	File         Kind = "file"          // Name: the file's path
	Output       Kind = "output"        // the run's output
	Error        Kind = "error"         // Name: the error's code
)

// Decision is one thing that was decided or met. Two decisions are the same if Kind, Agent, Name
// and Hash are.
type Decision struct {
	// Sequence is the position in the observed log at which the decision was recorded. In a driven
	// lane it is that of the observed decision which it repeats, or 0.
	Sequence uint64 `json:"sequence,omitempty"`
	// At is the position in the driven lane's own log; 0 in an observed lane.
	At uint64 `json:"at,omitempty"`
	// Agent is the path of the agent, as records have it; "" is the session's own.
	Agent string `json:"agent,omitempty"`
	Kind  Kind   `json:"kind"`
	Name  string `json:"name,omitempty"`
	// Hash is that of Content, hex SHA-256, as [HashOf] computes it.
	Hash string `json:"hash"`
	// Content is canonical JSON ([Canonical]), for showing.
	Content json.RawMessage `json:"content,omitempty"`
	// Parts are a model request's hashes of what it is made of, by the names below, so that a
	// difference can be explained.
	Parts map[string]string `json:"parts,omitempty"`
}

// The parts of a model request.
const (
	PartPrompt   = "prompt"   // the system prompt
	PartModel    = "model"    // the model and its settings
	PartTools    = "tools"    // the tools offered: names, descriptions, schemas
	PartMemory   = "memory"   // what was recalled
	PartOutput   = "output"   // the schema of the structured output
	PartMessages = "messages" // the conversation
)

// Same reports whether two decisions are the same.
func (d Decision) Same(e Decision) bool {
	return d.Kind == e.Kind && d.Agent == e.Agent && d.Name == e.Name && d.Hash == e.Hash
}

// Session is one session of the cohort with its lanes.
type Session struct {
	ID string `json:"session"`
	// Agent is the name of the session's agent.
	Agent    string `json:"agent"`
	Observed Lane   `json:"observed"`
	// Baseline and Candidate have one lane for each repeat, at least one.
	Baseline  []Lane `json:"baseline"`
	Candidate []Lane `json:"candidate"`
}
