package agui

// object is a JSON object of the protocol.
type object = map[string]any

// Types of events.
const (
	typeRunStarted       = "RUN_STARTED"
	typeRunFinished      = "RUN_FINISHED"
	typeRunError         = "RUN_ERROR"
	typeStepStarted      = "STEP_STARTED"
	typeStepFinished     = "STEP_FINISHED"
	typeTextStart        = "TEXT_MESSAGE_START"
	typeTextContent      = "TEXT_MESSAGE_CONTENT"
	typeTextEnd          = "TEXT_MESSAGE_END"
	typeReasoningStart   = "REASONING_START"
	typeReasoningBegins  = "REASONING_MESSAGE_START"
	typeReasoningContent = "REASONING_MESSAGE_CONTENT"
	typeReasoningEnds    = "REASONING_MESSAGE_END"
	typeReasoningEnd     = "REASONING_END"
	typeCallStart        = "TOOL_CALL_START"
	typeCallArgs         = "TOOL_CALL_ARGS"
	typeCallEnd          = "TOOL_CALL_END"
	typeCallResult       = "TOOL_CALL_RESULT"
	typeStateSnapshot    = "STATE_SNAPSHOT"
	typeStateDelta       = "STATE_DELTA"
	typeMessagesSnapshot = "MESSAGES_SNAPSHOT"
	typeActivitySnapshot = "ACTIVITY_SNAPSHOT"
	typeActivityDelta    = "ACTIVITY_DELTA"
	typeCustom           = "CUSTOM"
)

// protocolVersion is the version of the protocol whose events a client gets that declares it.
// Clients of earlier versions declare none, and refuse what they do not know.
const protocolVersion = "1.0"

// kept is what the adapter keeps with a run: the member Client of the run's options.
type kept struct {
	Protocol string `json:"protocol"` // always protocolName
	Version  string `json:"protocolVersion,omitempty"`
	Parent   string `json:"parentRunId,omitempty"`
}

const protocolName = "ag-ui"
