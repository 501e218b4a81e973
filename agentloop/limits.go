package agentloop

// MaxErrorText is how much of a tool's error the model and the log get, in
// bytes.
const MaxErrorText = 8 << 10

// MaxCalls is how many tool calls an answer may have. One with more is a failed
// model call, CodeTooManyCalls. It leaves room in one append for the records
// with which a run's end closes all calls of a step.
const MaxCalls = 300

// A run is failed as poisoned (CodePoisoned) if so many processes in a row die while they
// drive it without progress: MaxSilentClaims if no output of a model was recorded,
// otherwise MaxFruitlessClaims.
const (
	MaxSilentClaims    = 5
	MaxFruitlessClaims = 25
)
