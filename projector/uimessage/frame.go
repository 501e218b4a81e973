package uimessage

// Frame is one part of a UI message stream, as JSON.
type Frame []byte

// Ending is how the stream of a message comes to an end.
type Ending struct {
	Outcome Outcome
	// Error is what a failed run says.
	Error string
}

// Outcome is what a stream ends with.
type Outcome string

// Outcomes.
const (
	Completed   Outcome = "completed"
	Failed      Outcome = "failed"
	Aborted     Outcome = "aborted"     // failed because a caller or producer has ended it so
	Interrupted Outcome = "interrupted" // can be resumed
	Waiting     Outcome = "waiting"     // for a person, or for sub-agents that wait for one
)
