// Package words takes the words out of a text, whatever its script: what a
// local embedding is made of, and what a question and a memory may share.
package words

import (
	"strings"
	"unicode"
)

// unspaced are scripts that put no spaces between words: each of their
// characters counts as a word.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer}

// Of returns the words of a text in their order: letters and digits in lower
// case and without accents. An apostrophe within a word is left out.
func Of(text string) []string {
	var all []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			all = append(all, word.String())
			word.Reset()
		}
	}
	for _, r := range text {
		switch {
		case unicode.In(r, unspaced...):
			end()
			all = append(all, string(r))
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			word.WriteRune(plain(unicode.ToLower(r)))
		case unicode.Is(unicode.M, r), r == '\'', r == '’': // an accent of its own
		default:
			end()
		}
	}
	end()
	return all
}

// accented lists letters behind the one that they are without their accent.
const accented = "aàáâãäåāăą cçćĉċč dďđ eèéêëēĕėęě gĝğġģ hĥħ iìíîïĩīĭįı jĵ kķ lĺļľŀł nñńņňŉ oòóôõöøōŏő rŕŗř sśŝşšș tţťŧț uùúûüũūŭůűų wŵ yýÿŷ zźżž"

var unaccented = func() map[rune]rune {
	plain := map[rune]rune{}
	for _, group := range strings.Fields(accented) {
		letters := []rune(group)
		for _, r := range letters[1:] {
			plain[r] = letters[0]
		}
	}
	return plain
}()

func plain(r rune) rune {
	if p, ok := unaccented[r]; ok {
		return p
	}
	return r
}
