package decide

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// JudgeAnswer returns what the model gets for an answer that does not execute the
// call. def is nil if no agent of the session's type is here.
func JudgeAnswer(def *plan.Agent, name string, answer *projector.Answer) (result json.RawMessage, code, message string) {
	switch answer.Kind {
	case fact.SubmitTimeout:
		return nil, agentloop.CodeClientToolTimeout, fmt.Sprintf("Tool call %s was not answered in time", name)
	case fact.SubmitAbandoned:
		return nil, agentloop.CodeClientToolAbandoned, fmt.Sprintf("Tool call %s was abandoned by the user", name)
	case fact.SubmitApproval:
		message = fmt.Sprintf("Tool call %s was not approved by the user", name)
		if answer.Reason != "" {
			message += ": " + answer.Reason
		}
		return nil, agentloop.CodeApprovalDenied, shorten.Error(message)
	}
	if answer.Error != "" {
		return nil, agentloop.CodeClientToolError, shorten.Error(answer.Error)
	}
	if err := def.CheckResult(name, answer.Result); err != nil {
		return nil, agentloop.CodeClientToolInvalid, shorten.Error("the result does not fit the tool's output schema: " + err.Error())
	}
	return answer.Result, "", ""
}
