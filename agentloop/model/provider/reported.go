package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/upstream"
)

// Reported classifies an error that the provider reports, in an answer with an
// HTTP status or, with status 0, in the stream. body is its JSON, in any
// form.
func (c Caller) Reported(status int, body []byte) *model.Error {
	said := parseError(body)
	code, retryable := classify(status, said)
	return &model.Error{
		Code:       code,
		Message:    c.errorText(cmp.Or(said.message, http.StatusText(status), "the provider reported an error")),
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

// tooLong knows the texts of servers that have no separate code for this error.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{
		"maximum context length", "context length exceeded", "context window", "context limit", "maximum prompt length",
		"prompt is too long",
	} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// keyText is a key, which providers quote when they refuse it, more or less masked.
var keyText = regexp.MustCompile(`(?i)\b(?:sk|rk|gsk|xai)[-_][\w*.-]{8,}|\bbearer\s+[\w*.~+/=-]{16,}`)

// errorText is a provider's message as it may be shown and stored: valid UTF-8 without
// secrets and URLs, at most [model.MaxErrorText] bytes.
func (c Caller) errorText(message string) string {
	message = upstream.SecretsOf(c.Headers, c.APIKey).Hide(message, "[key]")
	return upstream.Cut(keyText.ReplaceAllString(message, "[key]"), model.MaxErrorText)
}
