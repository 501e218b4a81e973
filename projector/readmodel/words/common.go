package words

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// common are words that carry no topic. Those with an apostrophe are listed without it,
// and as the part before it.
var common = strings.Fields(`
a about after again all also always am an and any anything are as ask at away be because been before but by can cant come could
did didn didnt do does doesn doesnt doing don dont down each else ever every for from get give go going got had has have haven
havent he her here hers him his how i id if ill im in into is isn isnt it its ive just know let like make many may me mean might
mine more most much must my no nor not now of off ok okay on one only or other our ours out over please put said same say see
shall she should so some something such take tell than thank thanks that thats the their them then there these they thing things
think this those through to too under until up us very want was we well were what whats when where wheres which while who whom
whos whose why will with won wont would wouldn wouldnt yes yet you youre your yours
`)

// minLetters is the least length of a word that carries a topic, in a script that has
// spaces.
const minLetters = 3

// Topic is the words of a text that carry its topic.
type Topic struct{ words, stems map[string]bool }

// TopicOf returns the topic of a text.
func TopicOf(text string) Topic {
	t := Topic{map[string]bool{}, map[string]bool{}}
	for _, w := range Of(text) {
		if !isTelling(w) {
			continue
		}
		t.words[w] = true
		for stem := range stems(w) {
			t.stems[stem] = true
		}
	}
	return t
}

// In reports whether a text has a word of the topic or a form of it that differs by a
// short ending only.
func (t Topic) In(text string) bool {
	return slices.ContainsFunc(Of(text), func(w string) bool {
		if t.words[w] || t.stems[w] {
			return true
		}
		for stem := range stems(w) {
			if t.words[stem] {
				return true
			}
		}
		return false
	})
}

func isTelling(w string) bool {
	if slices.Contains(common, w) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(w)
	return utf8.RuneCountInString(w) >= minLetters || strings.ContainsFunc(w, unicode.IsNumber) || kindOf(first) == unspaced
}

// maxEnding is the number of characters by which forms of one word may differ.
const maxEnding = 3

// stems yields a word with one to maxEnding characters removed from its end.
func stems(w string) iter.Seq[string] {
	return func(yield func(string) bool) {
		letters := []rune(w)
		for n := len(letters) - 1; n >= max(minLetters, len(letters)-maxEnding); n-- {
			if !yield(string(letters[:n])) {
				return
			}
		}
	}
}
