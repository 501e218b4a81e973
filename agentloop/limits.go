package agentloop

// MaxErrorText is how much of a tool's error the model and the log get, in
// bytes.
const MaxErrorText = 8 << 10

// MaxCalls is how many tool calls an answer may have. One with more is a failed
// model call, CodeTooManyCalls. It leaves room in one append for the records
// with which a run's end closes all calls of a step.
const MaxCalls = 300

// How many processes in a row may die with a tree and record nothing that
// brings its run on: before a word of a model's was recorded, and after. Then
// the tree is taken to be what kills them.
const (
	MaxSilentClaims    = 5
	MaxFruitlessClaims = 25
)
