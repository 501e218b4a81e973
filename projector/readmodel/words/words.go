// Package words splits a text of any script into words. The index of memories, the local
// embedding and the comparison of a question with a memory all use it, so that they agree
// on what a word is.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes is how many bytes of a word count.
const MaxBytes = 64

// Of returns the words of a text in their order, so that case, accents and forms of
// characters don't matter. In a script without spaces between words, each character
// counts as a word.
func Of(text string) (all []string) {
	each(text, func(word string, k kind) {
		if k == unspaced {
			all = append(all, strings.Split(word, "")...)
		} else {
			all = append(all, word)
		}
	})
	return all
}

// Terms is Of for an index, for which single characters say too little: in a script
// without spaces, two adjacent characters count as a word.
func Terms(text string) (all []string) {
	each(text, func(word string, k kind) {
		if k != unspaced {
			all = append(all, word)
			return
		}
		letters := strings.Split(word, "")
		if len(letters) == 1 {
			all = append(all, word)
		}
		for i := range len(letters) - 1 {
			all = append(all, letters[i]+letters[i+1])
		}
	})
	return all
}

// kind is the role of a character in a word.
type kind int

const (
	between  kind = iota // separates words
	accent               // belongs to the character before, and is ignored
	spaced               // part of a word, in a script with spaces
	unspaced             // part of a text without spaces
)

// scripts are the scripts without spaces between words.
var scripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return spaced
		}
	case unicode.IsMark(r) && (r < 0x0900 || unicode.Is(unicode.Inherited, r)): // in Indic scripts vowels are marks as well
		return accent
	case unicode.In(r, scripts...):
		return unspaced
	case unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Co):
		return spaced
	}
	return between
}

// each calls do for each word, and for each run of characters without spaces.
func each(text string, do func(word string, k kind)) {
	var word []byte
	of := between
	for _, r := range norm.NFKD.String(text) {
		k := kindOf(r)
		if k == accent {
			continue
		}
		if k != of && of != between {
			do(string(word), of)
			word = word[:0]
		}
		of = k
		switch k {
		case unspaced:
			word = utf8.AppendRune(word, r)
		case spaced:
			if r = fold(r); len(word)+utf8.RuneLen(r) <= MaxBytes {
				word = utf8.AppendRune(word, r)
			}
		}
	}
	if of != between {
		do(string(word), of)
	}
}

// fold returns a letter's lower-case form. It also maps letters with a stroke or a dot
// that Unicode does not decompose, and the form of sigma at the end of a word.
func fold(r rune) rune {
	switch r = unicode.ToLower(r); r {
	case 'đ':
		return 'd'
	case 'ħ':
		return 'h'
	case 'ı':
		return 'i'
	case 'ł':
		return 'l'
	case 'ø':
		return 'o'
	case 'ŧ':
		return 't'
	case 'ς':
		return 'σ'
	}
	return r
}
