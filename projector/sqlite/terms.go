package sqlite

import (
	"strconv"
	"strings"
)

// distinct returns the different words.
func distinct(words []string) map[string]bool {
	set := make(map[string]bool, len(words))
	for _, word := range words {
		set[word] = true
	}
	return set
}

// prefixOf is what a scope's terms have before them in the search index, which
// has no word that is not letters and digits.
func prefixOf(scope int64) string { return strconv.FormatInt(scope, 10) + "x" }

// joined is what the search index has of words.
func (s *scope) joined(words []string) string {
	prefix := prefixOf(s.id)
	var text strings.Builder
	for i, word := range words {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(prefix + word)
	}
	return text.String()
}

// split is the inverse of joined.
func (s *scope) split(text string) []string {
	prefix := prefixOf(s.id)
	words := strings.Split(text, " ")
	if text == "" {
		return nil
	}
	for i := range words {
		words[i] = strings.TrimPrefix(words[i], prefix)
	}
	return words
}
