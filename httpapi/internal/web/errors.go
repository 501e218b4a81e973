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

// SizeError: a request, or a part of it, is larger than Limit.
type SizeError struct {
	Reason string
	Limit  int
}

func (e *SizeError) Error() string { return "httpapi: " + e.Reason }

// Cut returns the longest prefix of whole characters that has at most limit bytes.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}
