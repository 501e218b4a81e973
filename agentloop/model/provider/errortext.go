package provider

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/model"
)

var (
	urlText = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)
	// Providers quote a key that they refuse, more or less masked.
	keyText = regexp.MustCompile(`(?i)\b(?:sk|rk|gsk|xai)[-_][\w*.-]{8,}|\bbearer\s+[\w*.~+/=-]{16,}`)
)

// shortKey is the length of a key, in bytes, below which it is taken for a
// placeholder: such a text may be part of any word.
const shortKey = 8

// errorText is a provider's message as it may be shown and stored: valid
// UTF-8 without secrets and URLs, at most [model.MaxErrorText] bytes.
func errorText(message string, secrets []string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	// First, so that a cut leaves no half of a key.
	for _, secret := range secrets {
		if len(secret) >= shortKey {
			message = strings.ReplaceAll(message, secret, "[key]")
		}
	}
	message = urlText.ReplaceAllString(message, "[URL]")
	message = keyText.ReplaceAllString(message, "[key]")
	if len(message) <= model.MaxErrorText {
		return message
	}
	end := model.MaxErrorText
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
