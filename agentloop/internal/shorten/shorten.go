// Package shorten cuts texts to a number of bytes without cutting a character.
package shorten

import (
	"strings"

	"github.com/helixd/helixd/agentloop"
)

// Text shortens a text to n bytes.
func Text(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// Error shortens an error text to MaxErrorText. A failed call always has one.
func Error(s string) string {
	if s == "" {
		return "the tool failed"
	}
	if len(s) <= agentloop.MaxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:agentloop.MaxErrorText], "")
}

// ErrorIf is Error for a call that may not have failed: then there is no text.
func ErrorIf(message string) string {
	if message == "" {
		return ""
	}
	return Error(message)
}
