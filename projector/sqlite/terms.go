package sqlite

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxTerm is how much of a word counts, in bytes.
const maxTerm = 64

// unspaced are the scripts that don't set words apart: two characters that
// stand side by side are a word of theirs.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// termsOf returns the words of a text, one after the other, so that case,
// accents and forms of characters don't matter.
func termsOf(text string) []string {
	var all []string
	var word strings.Builder
	var before rune // of an unspaced script
	alone := false  // before has no neighbour yet
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
		if alone {
			all = append(all, string(before))
		}
		before, alone = 0, false
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, r) && (r < 0x0900 || r == 0x3099 || r == 0x309a): // an accent
		case unicode.In(r, unspaced...):
			if before == 0 {
				end()
				alone = true
			} else {
				all = append(all, string([]rune{before, r}))
				alone = false
			}
			before = r
		case isWord(r), unicode.IsMark(r):
			if before != 0 {
				end()
			}
			if r = unicode.ToLower(r); word.Len()+utf8.RuneLen(r) <= maxTerm {
				word.WriteRune(r)
			}
		default:
			end()
		}
	}
	end()
	return all
}

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
