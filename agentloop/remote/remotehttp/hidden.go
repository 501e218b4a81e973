package remotehttp

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxErrorText is how much of a server's message is kept, in bytes.
const MaxErrorText = 8 << 10

// shortSecret is the length of a header's value, in bytes, below which it may
// be part of any text and is not looked for.
const shortSecret = 8

var urlText = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// hidden are the texts that no message may show: the values of the headers
// that were sent, which a server may quote. Longer ones come first.
type hidden []string

func hide(headers map[string]string) hidden {
	var h hidden
	add := func(s string) {
		if len(s) >= shortSecret {
			h = append(h, s)
		}
	}
	for _, value := range headers {
		add(value)
		if _, credentials, ok := strings.Cut(value, " "); ok { // after Bearer or Basic
			add(credentials)
		}
	}
	slices.SortFunc(h, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return h
}

// from returns message as it may be shown and stored: valid UTF-8 without
// hidden texts and URLs, at most MaxErrorText bytes.
func (h hidden) from(message string) string {
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	for _, text := range h { // before the cut, which could leave half of one
		message = strings.ReplaceAll(message, text, "[hidden]")
	}
	message = urlText.ReplaceAllString(message, "[URL]")
	if len(message) <= MaxErrorText {
		return message
	}
	end := MaxErrorText
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end]
}
