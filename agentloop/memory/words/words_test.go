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

func TestTopics(t *testing.T) {
	for question, texts := range map[string][2]string{
		"What is my dog called?":                 {"Rex is a DOG.", "What is my cat doing?"},
		"Which dogs are there?":                  {"A dog!", "Which are there?"},
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
