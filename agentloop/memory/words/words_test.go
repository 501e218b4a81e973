package words_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory/words"
)

func TestOf(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		" … !?":                         nil,
		"What's MY dog called?":         {"whats", "my", "dog", "called"},
		"Crème brûlée, Łódź":            {"creme", "brulee", "lodz"},
		"Cre\u0300me":                   {"creme"},
		"flight LH-454 at 10:05":        {"flight", "lh", "454", "at", "10", "05"},
		"東京 likes ラーメン":                 {"東", "京", "likes", "ラ", "ー", "メ", "ン"},
		"СОБАКА und Straße":             {"собака", "und", "straße"},
		"not \xff\xfe utf8, but usable": {"not", "utf8", "but", "usable"},
	} {
		require.Equal(t, want, words.Of(text), text)
	}
}

func TestTelling(t *testing.T) {
	require.Equal(t, []string{"dog", "called"}, words.Telling("What is my dog called? My dog!"))
	require.Equal(t, []string{"capital", "france", "77"}, words.Telling("What is the capital of France? 77"))
	require.Empty(t, words.Telling("What is it that you would do with it?"))
	require.Equal(t, []string{"犬"}, words.Telling("犬"))
}

func TestAlike(t *testing.T) {
	for _, pair := range [][2]string{{"dog", "dog"}, {"dogs", "dog"}, {"walk", "walking"}, {"犬", "犬"}} {
		require.True(t, words.Alike(pair[0], pair[1]), pair)
		require.True(t, words.Alike(pair[1], pair[0]), pair)
	}
	for _, pair := range [][2]string{{"cat", "dog"}, {"no", "note"}, {"car", "cardinals"}} {
		require.False(t, words.Alike(pair[0], pair[1]), pair)
		require.False(t, words.Alike(pair[1], pair[0]), pair)
	}
}
