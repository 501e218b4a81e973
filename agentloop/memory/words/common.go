package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// common are words that say nothing about what a sentence is about.
var common = strings.Fields(`
a about after again all also always am an and any anything are as ask at away be because been before but by can cant come could
did didnt do does doesnt doing dont down each else ever every for from get give go going got had has have havent he her here hers
him his how i id if ill im in into is isnt it its ive just know let like make many may me mean might mine more most much must my
no nor not now of off ok okay on one only or other our ours out over please put said same say see shall she should so some
something such take tell than thank thanks that thats the their them then there these they thing things think this those through
to too under until up us very want was we well were what whats when where wheres which while who whom whos whose why will with
wont would wouldnt yes yet you youre your yours
`)

// minLetters is how long a word must be at least to be about something, in a
// script that has spaces.
const minLetters = 3

// Telling returns the words that tell what a text is about, each once.
func Telling(text string) []string {
	var telling []string
	for _, w := range Of(text) {
		if isTelling(w) && !slices.Contains(telling, w) {
			telling = append(telling, w)
		}
	}
	return telling
}

func isTelling(w string) bool {
	if slices.Contains(common, w) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(w)
	return utf8.RuneCountInString(w) >= minLetters || strings.ContainsFunc(w, unicode.IsNumber) || unicode.In(first, unspaced...)
}

// maxEnding is by how many characters forms of one word may differ.
const maxEnding = 3

// Alike reports whether two words may be forms of one: they are equal, or one
// is the other with a short ending.
func Alike(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	ending, ok := strings.CutPrefix(b, a)
	return ok && (ending == "" || utf8.RuneCountInString(a) >= minLetters && utf8.RuneCountInString(ending) <= maxEnding)
}
