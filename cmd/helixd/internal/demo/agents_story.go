package demo

import (
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// Story is the agent whose answer lasts long enough to kill the daemon in the middle of it.
const Story = "storyteller"

// storyDelay is the pause between two words of the story: all of it takes some 20 s.
const storyDelay = 125 * time.Millisecond

func storyAgent() agentloop.Agent {
	return agentloop.Agent{
		Name:         Story,
		Description:  "Tells a story for 20 seconds: stop the daemon meanwhile.",
		SystemPrompt: "You tell stories.",
		Model: scripted.New([]scripted.Turn{{
			Text:  story,
			Usage: fact.TokenUsage{Prompt: 21, Completion: 172},
		}}, &scripted.Options{Name: "scripted-demo", Delay: storyDelay}),
	}
}

const story = `The keeper of the lighthouse wrote everything into one book: each ship, each change of the wind, each candle that she lit. She never tore out a page. If a line was wrong, she wrote a second line which said so, and both stayed.

One night a storm put out the light in the middle of a sentence. Her brother climbed the tower, read the book to its last line, and knew all that she had known: which ship was out, which lamp was trimmed, what was still to be done. He crossed out the half sentence in the margin, lit the lamp again, and wrote on. The captain, who had counted the flashes, missed none and saw none twice.

In the morning they asked what had happened in the night. Nobody had to remember it. They opened the book and read.`
