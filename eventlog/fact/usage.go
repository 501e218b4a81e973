package fact

// UsageRecorded has usage that no other record contains.
type UsageRecorded struct {
	RunID      string      `json:"runId"`
	StepCount  int         `json:"stepCount"`
	Source     UsageSource `json:"source"`
	SourceType string      `json:"sourceType" helix:"id"` // client_tool_wait_ms, or the name that a tool gave
	SourceName string      `json:"sourceName"`            // of the tool
	Amount     float64     `json:"amount"`
	Base
}

func (*UsageRecorded) Type() string { return "usage_recorded" }

// UsageSource is what used something.
type UsageSource string

// Usage sources.
const (
	UsageAgent    UsageSource = "agent"
	UsageTool     UsageSource = "tool"
	UsageSubAgent UsageSource = "subagent"
)

// ClientToolWait is the source type of the time that a suspended call has
// waited, in milliseconds.
const ClientToolWait = "client_tool_wait_ms"
