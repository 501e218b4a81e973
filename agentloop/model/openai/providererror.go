package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
)

// providerError classifies an error that the provider tells, in an answer with
// an HTTP status or, with status 0, in the stream.
func (m *chat) providerError(status int, body []byte) error {
	said := parseError(body)
	code, retryable := classify(status, said)
	return &model.Error{
		Code:       code,
		Message:    errorText(cmp.Or(said.message, http.StatusText(status), "the provider reported an error"), m.opts.APIKey),
		Retryable:  retryable,
		StatusCode: status,
	}
}

// reported is an error in the provider's words.
type reported struct{ message, kind, code string }

// parseError reads an error in OpenAI's form {"error": {message, type, code}}
// and in those that compatible servers use: the object alone, a list around
// it, a text in its place. A body that is none of them has no message: it may
// be a proxy's page.
func parseError(body []byte) reported {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer errorFields
	if json.Unmarshal(body, &outer) != nil {
		return reported{}
	}
	inner := outer
	if len(outer.Error) > 0 && json.Unmarshal(outer.Error, &inner) != nil {
		inner.Message = outer.Error
	}
	return reported{
		message: cmp.Or(scalar(inner.Message), scalar(inner.Detail)),
		kind:    scalar(inner.Type),
		code:    scalar(inner.Code),
	}
}

// errorFields are raw: servers disagree on what is text and what a number.
type errorFields struct {
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Type    json.RawMessage `json:"type"`
	Code    json.RawMessage `json:"code"`
}

// scalar is the text of a JSON string or number, otherwise empty.
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// classify finds the code of an error. What the provider calls it comes first,
// then the status.
func classify(status int, said reported) (code string, retryable bool) {
	names := []string{strings.ToLower(said.code), strings.ToLower(said.kind)}
	for _, name := range names {
		if c, ok := named[name]; ok && c.beforeStatus {
			return c.code, c.retryable
		}
	}
	switch status {
	case 0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		if tooLong(said.message) {
			return model.CodeContextLength, false
		}
	}
	if status != 0 {
		return classifyStatus(status)
	}
	for _, name := range names {
		if c, ok := named[name]; ok {
			return c.code, c.retryable
		}
		if n, err := strconv.Atoi(name); err == nil && n >= 400 && n < 600 {
			return classifyStatus(n)
		}
	}
	// The provider had taken the request, so it may take it again.
	return model.CodeProvider, true
}

func classifyStatus(status int) (code string, retryable bool) {
	switch {
	case status == http.StatusTooManyRequests:
		return model.CodeRateLimited, true
	case status == http.StatusServiceUnavailable || status == 529:
		return model.CodeOverloaded, true
	case status >= 500:
		return model.CodeUnavailable, true
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return model.CodeAuthFailed, false
	case status == http.StatusRequestTimeout:
		return model.CodeTimeout, true
	case status >= 400:
		return model.CodeInvalidRequest, false
	default:
		return model.CodeProvider, false
	}
}

type classified struct {
	code         string
	retryable    bool
	beforeStatus bool // says more than the HTTP status
}

// named are the codes and types that providers give errors.
var named = map[string]classified{
	"context_length_exceeded":       {model.CodeContextLength, false, true},
	"content_filter":                {model.CodeContentFiltered, false, true},
	"content_policy_violation":      {model.CodeContentFiltered, false, true},
	"responsibleaipolicyviolation":  {model.CodeContentFiltered, false, true},
	"moderation_blocked":            {model.CodeContentFiltered, false, true},
	"insufficient_quota":            {model.CodeRateLimited, false, true},
	"billing_hard_limit_reached":    {model.CodeRateLimited, false, true},
	"rate_limit_exceeded":           {model.CodeRateLimited, true, false},
	"rate_limit_error":              {model.CodeRateLimited, true, false},
	"rate_limit_reached_error":      {model.CodeRateLimited, true, false},
	"tokens":                        {model.CodeRateLimited, true, false},
	"requests":                      {model.CodeRateLimited, true, false},
	"overloaded":                    {model.CodeOverloaded, true, false},
	"overloaded_error":              {model.CodeOverloaded, true, false},
	"engine_overloaded_error":       {model.CodeOverloaded, true, false},
	"server_overloaded":             {model.CodeOverloaded, true, false},
	"service_unavailable":           {model.CodeOverloaded, true, false},
	"server_error":                  {model.CodeUnavailable, true, false},
	"internal_error":                {model.CodeUnavailable, true, false},
	"internal_server_error":         {model.CodeUnavailable, true, false},
	"internalservererror":           {model.CodeUnavailable, true, false},
	"api_error":                     {model.CodeUnavailable, true, false},
	"timeout":                       {model.CodeTimeout, true, false},
	"timeout_error":                 {model.CodeTimeout, true, false},
	"authentication_error":          {model.CodeAuthFailed, false, false},
	"invalid_api_key":               {model.CodeAuthFailed, false, false},
	"permission_error":              {model.CodeAuthFailed, false, false},
	"invalid_request_error":         {model.CodeInvalidRequest, false, false},
	"badrequesterror":               {model.CodeInvalidRequest, false, false},
	"not_found_error":               {model.CodeInvalidRequest, false, false},
	"model_not_found":               {model.CodeInvalidRequest, false, false},
	"invalid_prompt":                {model.CodeInvalidRequest, false, false},
	"unsupported_parameter":         {model.CodeInvalidRequest, false, false},
	"exceeded_current_quota_error":  {model.CodeRateLimited, false, true},
	"exceed_context_size_error":     {model.CodeContextLength, false, true},
	"model_context_window_exceeded": {model.CodeContextLength, false, true},
}

// tooLong knows the words of servers that give this error no code of its own.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "context window", "maximum prompt length", "prompt is too long",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}
