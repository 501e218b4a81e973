// Package words splits a text of any script into words: what the
// index finds memories by, what a local embedding is made of, and what a
// question and a memory may share. All of them fold words alike, so that what
// one finds is not strange to another.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxBytes is how much of a word counts, in bytes.
const MaxBytes = 64

// Of returns the words of a text in their order, so that case, accents and
// forms of characters don't matter. Of a script that puts no spaces between
// words each character counts as one.
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

// Terms is Of for an index, for which single characters are too little: in
// a script without spaces, two adjacent characters count as a word.
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

// kind is what a character is to words.
type kind int

const (
	between  kind = iota // words
	accent               // of the character before, which is the same without it
	spaced               // of a word
	unspaced             // of a run of words
)

// scripts are those that put no spaces between words.
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

// fold returns a letter's small form. Some differ in a stroke or a dot that
// Unicode doesn't take off, or by their place in a word.
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
