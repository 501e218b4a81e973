package upstream

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// shortSecret is the length, in bytes, below which a secret may be part of any text and is
// not looked for.
const shortSecret = 8

var urlText = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+`)

// Secrets are texts that no message may show. Longer ones come first: one may be part of
// another.
type Secrets []string

// SecretsOf returns the values of headers, with and without their scheme ("Bearer"), and
// other secrets. A server may quote them.
func SecretsOf(headers map[string]string, others ...string) (all Secrets) {
	for _, value := range headers {
		others = append(others, value)
		if _, credentials, ok := strings.Cut(value, " "); ok {
			others = append(others, strings.TrimSpace(credentials))
		}
	}
	all = slices.DeleteFunc(others, func(s string) bool { return len(s) < shortSecret })
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// Hide returns a server's message as valid UTF-8, with other texts in place of the secrets
// and of URLs. Cut it afterwards: a cut could leave half of a secret.
func (s Secrets) Hide(message, by string) string {
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	for _, secret := range s {
		message = strings.ReplaceAll(message, secret, by)
	}
	return urlText.ReplaceAllString(message, "[URL]")
}

// Cut returns the longest prefix of whole characters that has at most n bytes.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
