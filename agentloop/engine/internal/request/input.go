package request

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Limits of a submission, in bytes.
const (
	MaxSubmittedResult = 1 << 20
	MaxSubmittedError  = 8 << 10
)

// CheckInputs refuses what a user's message must not have.
func CheckInputs(messages []agentloop.Input) error {
	for _, m := range messages {
		var meta map[string]json.RawMessage
		if m.Metadata == nil || json.Unmarshal(m.Metadata, &meta) != nil {
			continue // it is validated with its record
		}
		if _, ours := meta[projector.OwnMetadata]; ours {
			return &eventlog.ValidationError{Field: "metadata." + projector.OwnMetadata, Reason: "is reserved"}
		}
	}
	return nil
}

// CheckResult refuses what is no id of a call, and what no call takes as its result:
// exactly one of result and problem is set. The error names a field as JSON does.
func CheckResult(call string, result json.RawMessage, problem string) error {
	bad := func(field, reason string) error { return &eventlog.ValidationError{Field: field, Reason: reason} }
	switch {
	case eventlog.ValidateID(call) != nil:
		return bad("toolCallId", "must be a valid id")
	case (result != nil) == (problem != ""):
		return bad("result", "exactly one of result and error is required")
	case len(result) > MaxSubmittedResult:
		return bad("result", fmt.Sprintf("has more than %d bytes", MaxSubmittedResult))
	case len(problem) > MaxSubmittedError:
		return bad("error", fmt.Sprintf("has more than %d bytes", MaxSubmittedError))
	case result != nil && !json.Valid(result):
		return bad("result", "must be JSON")
	}
	return nil
}
