package words_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/helixd/helixd/projector/readmodel/words"
)

func TestOf(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                  nil,
		" … !?":                             nil,
		"What's MY dog called?":             {"what", "s", "my", "dog", "called"},
		"Crème brûlée, Łódź":                {"creme", "brulee", "lodz"},
		"Cre\u0300me":                       {"creme"},
		"ｆｕｌｌ ﬁne m²":                       {"full", "fine", "m2"},
		"flight LH-454 at 10:05, x_y":       {"flight", "lh", "454", "at", "10", "05", "x", "y"},
		"東京 likes ラーメン":                     {"東", "京", "likes", "ラ", "ー", "メ", "ン"},
		"がカ":                                {"か", "カ"},
		"မြန်":                              {"မ", "ြ", "န", "်"},
		"हिन्दी":                            {"हिन्दी"},
		"СОБАКА und Straße":                 {"собака", "und", "straße"},
		"❤\ufe0f 1\ufe0f\u20e3 ✌\U0001f3fd": {"1"},
		"not \xff\xfe utf8, but usable":     {"not", "utf8", "but", "usable"},
		strings.Repeat("é", 100):            {strings.Repeat("e", words.MaxBytes)},
		strings.Repeat("я", 100):            {strings.Repeat("я", words.MaxBytes/2)},
		"e\u0301e\u0301 \u0301":             {"ee"},
	} {
		require.Equal(t, want, words.Of(text), "%q", text)
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"Hello, WORLD! don't":        {"hello", "world", "don", "t"},
		"I like 日本語 a lot":           {"i", "like", "日本", "本語", "a", "lot"},
		"茶 a茶b":                      {"茶", "a", "茶", "b"},
		"がカ":                         {"かカ"},
		strings.Repeat("東", 100)[:9]: {"東東", "東東"},
	} {
		require.Equal(t, want, words.Terms(text), "%q", text)
	}
}

func TestTopics(t *testing.T) {
	for question, texts := range map[string][2]string{
		"What is my dog called?":                 {"Rex is a DOG.", "What is my cat doing?"},
		"Which dogs are there?":                  {"A dog!", "Which are there?"},
		"What's Ada's dog?":                      {"ADA", "What’s his"},
		"Don't they? Won't she play?":            {"play", "I don’t, I won’t"},
		"Does she walk?":                         {"She was walking.", "Does she?"},
		"Is it walking?":                         {"A walk", "a wall"},
		"The capital of France, please, the 77.": {"77", "The rest of it, please"},
		"The car":                                {"Cars", "Cardinals"},
		"Ünter dén Linden":                       {"unter", "un"},
		"犬":                                      {"白い犬", "白い猫"},
	} {
		topic := words.TopicOf(question)
		require.True(t, topic.In(texts[0]), question)
		require.False(t, topic.In(texts[1]), question)
	}
	none := words.TopicOf("What is it that you would do with it?")
	require.False(t, none.In("What is it that you would do with it?"))
}

// alike are questions and texts that have a word in common.
var alike = [][2]string{
	{"pho?", "phở"}, {"елка", "ёлку, ёлка"}, {"Ча\u0438\u0306", "чай"}, {"ΤΣΑΪ", "τσάι"}, {"ΔΡΟΜΟΣ", "δρόμος"}, {"ｔｅａ", "tea"},
	{"l'eau", "une eau"}, {"eau", "l’eau"}, {"Đà Nẵng", "da nang"}, {"서울", "서울"}, {"가방", "\u1100\u1161방"}, {"မြန်မာ", "ကမြန်မာ"},
	{"東京", "東京都"}, {"茶", "お茶"}, {"ชา", "ชาเขียว"}, {strings.Repeat("long", 20), strings.Repeat("long", 30)},
}

func TestFormsOfAWord(t *testing.T) {
	for _, pair := range alike {
		require.True(t, words.TopicOf(pair[0]).In(pair[1]), "%q", pair)
		require.True(t, words.TopicOf(pair[1]).In(pair[0]), "%q", pair)
	}
}

// FuzzWords: the form of characters doesn't matter. If two texts share a term that
// carries a topic, then each has a word of the other's topic.
func FuzzWords(f *testing.F) {
	for _, pair := range alike {
		f.Add(pair[0], pair[1])
	}
	f.Add("I don't, e\u0301 \u0345 İıſßς ﷺ ½ ŉ", "don \xff\u200dﬁ 1\u20e3 က\u1031 हि")
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "?"), strings.ToValidUTF8(b, "?")
		for _, form := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			require.Equal(t, words.Of(a), words.Of(form.String(a)))
			require.Equal(t, words.Terms(a), words.Terms(form.String(a)))
		}
		topic, has := words.TopicOf(a), words.Terms(b)
		for _, term := range words.Terms(a) {
			require.Equal(t, []string{term}, words.Terms(term), "folded once is folded")
			if words.TopicOf(term).In(term) && slices.Contains(has, term) {
				require.True(t, topic.In(b), "%q", term)
			}
		}
	})
}
