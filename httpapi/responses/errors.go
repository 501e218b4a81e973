package responses

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/httpapi/api"
)

// Problem is an error in the protocol's terms.
type Problem struct {
	Status  int
	Message string
	Param   string // empty: none
	Code    string // empty: none
}

func (p *Problem) Error() string { return "httpapi: responses: " + p.Message }

// errorBody is the answer to a request that failed. All members are always there.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// ErrorOf returns an error as the protocol's clients expect it. body is the same error as
// helixd's own routes show it.
func ErrorOf(err error, status int, body api.ErrorBody) any {
	d := errorDetail{Message: body.Error, Type: typeOf(status)}
	if field, ok := body.Detail.(api.FieldDetail); ok {
		d.Param = optional(field.Field)
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		d.Message, d.Param, d.Code = p.Message, optional(p.Param), optional(p.Code)
	}
	if unknown, ok := errors.AsType[*agentloop.UnknownAgentError](err); ok {
		d.Message = fmt.Sprintf("The model '%s' does not exist: a model is the name of an agent; %s.", unknown.AgentType, unknown.Advice())
		d.Param, d.Code = optional("model"), optional("model_not_found")
	}
	if d.Code == nil {
		d.Code = optional(codeOf(status))
	}
	return errorBody{d}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// typeOf returns the kind of errors that have a status.
func typeOf(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// codeOf returns the code of errors that have none but their status.
func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "invalid_api_key"
	case http.StatusConflict:
		return "conversation_locked"
	case http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case http.StatusServiceUnavailable:
		return "service_unavailable"
	}
	return ""
}

func invalid(param, message string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: message, Param: param, Code: "invalid_value"}
}

func unsupported(param, message string) *Problem {
	return &Problem{Status: http.StatusBadRequest, Message: message, Param: param, Code: "unsupported_value"}
}

func noResponse(id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("Response with id '%s' not found.", id), Code: "response_not_found"}
}

func noPrevious(id string) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Message: fmt.Sprintf("Previous response with id '%s' not found.", id),
		Param: "previous_response_id", Code: "previous_response_not_found",
	}
}

func noConversation(id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("Conversation with id '%s' not found.", id), Code: "conversation_not_found"}
}

func noItem(id string) *Problem {
	return &Problem{Status: http.StatusNotFound, Message: fmt.Sprintf("Item with id '%s' not found.", id), Code: "item_not_found"}
}

// failureCodes are the codes of failed responses, by the code of the run. All others are
// server_error.
var failureCodes = map[string]string{
	model.CodeRateLimited:       "rate_limit_exceeded",
	model.CodeOverloaded:        "rate_limit_exceeded",
	agentloop.CodeQuotaExceeded: "rate_limit_exceeded",
	model.CodeInvalidRequest:    "invalid_prompt",
	model.CodeContextLength:     "invalid_prompt",
	model.CodeContentFiltered:   "invalid_prompt",
}

// failureOf returns the error of a failed response.
func failureOf(code, message string) object {
	return object{"code": cmp.Or(failureCodes[code], "server_error"), "message": cmp.Or(message, "The run failed.")}
}
