package httpapi

import (
	"errors"
	"strings"
)

// Errors of requests and their bodies.
var (
	errLengthRequired = errors.New("httpapi: length required")
	errBodyLost       = errors.New("httpapi: body lost")
	errPanicked       = errors.New("httpapi: handler panicked")
)

// sizeError tells that a request, or a part of it, is larger than limit.
type sizeError struct {
	reason string
	limit  int
}

func (e *sizeError) Error() string { return "httpapi: " + e.reason }

// cut returns the beginning of a text, at most limit bytes of whole characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
