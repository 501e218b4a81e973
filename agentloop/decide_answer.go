package agentloop

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// judgeAnswer returns what the model gets for an answer that does not execute the
// call. def is nil if no agent of the session's type is here.
func judgeAnswer(def *definition, name string, answer *projector.Answer) (result json.RawMessage, code, message string) {
	switch answer.Kind {
	case eventlog.SubmitTimeout:
		return nil, CodeClientToolTimeout, fmt.Sprintf("Tool call %s was not answered in time", name)
	case eventlog.SubmitAbandoned:
		return nil, CodeClientToolAbandoned, fmt.Sprintf("Tool call %s was abandoned by the user", name)
	case eventlog.SubmitApproval:
		message = fmt.Sprintf("Tool call %s was not approved by the user", name)
		if answer.Reason != "" {
			message += ": " + answer.Reason
		}
		return nil, CodeApprovalDenied, cut(message)
	}
	if answer.Error != "" {
		return nil, CodeClientToolError, cut(answer.Error)
	}
	if def != nil && def.tools[name] != nil {
		if err := checkResult(def.tools[name], answer.Result); err != nil {
			return nil, CodeClientToolInvalid, cut("the result does not fit the tool's output schema: " + err.Error())
		}
	}
	return answer.Result, "", ""
}
