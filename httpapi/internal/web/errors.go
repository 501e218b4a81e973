package web

import (
	"errors"
	"strings"
)

// Errors of requests and their bodies.
var (
	ErrLengthRequired = errors.New("httpapi: length required")
	ErrBodyLost       = errors.New("httpapi: body lost")
	ErrPanicked       = errors.New("httpapi: handler panicked")
)

// SizeError tells that a request, or a part of it, is larger than limit.
type SizeError struct {
	Reason string
	Limit  int
}

func (e *SizeError) Error() string { return "httpapi: " + e.Reason }

// Cut returns the beginning of a text, at most limit bytes of whole characters.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
