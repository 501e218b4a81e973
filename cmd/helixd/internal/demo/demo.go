package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
)

// demoDelay is the pause between two words of a demo agent.
const demoDelay = 40 * time.Millisecond

// Agent is the one that is tried first.
const Agent = "weather"

// Agents show what helixd does without a model's key.
func Agents() []agentloop.Agent {
	opts := &scripted.Options{Name: "scripted-demo", Delay: demoDelay}
	return append([]agentloop.Agent{
		storyAgent(),
		{
			Name:         Agent,
			Description:  "Thinks, calls two tools at once, keeps notes in its state, and answers.",
			SystemPrompt: "You tell the weather.",
			Model:        scripted.New(weatherScript(), opts),
			Tools:        []agentloop.Tool{weatherTool()},
			InitialState: json.RawMessage(`{"looked":{}}`),
		},
		{
			Name:         "planner",
			Description:  "Gives structured output.",
			SystemPrompt: "You plan a day.",
			Model: scripted.New([]scripted.Turn{{
				Reasoning: "A short plan is enough.",
				ToolCalls: []scripted.Call{{
					Name:      agentloop.FinishTool,
					Arguments: json.RawMessage(`{"steps":["coffee","write the test","make it pass","walk"]}`),
				}},
				Usage: fact.TokenUsage{Prompt: 31, Completion: 22},
			}}, opts),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"string"}}},"required":["steps"]}`),
		},
	}, append(waitingAgents(opts), incidentAgents(opts)...)...)
}

func weatherScript() []scripted.Turn {
	return []scripted.Turn{
		{
			Reasoning: "The user wants to know about the weather. I had better look at two cities before I say anything.",
			Text:      "Let me look that up.",
			ToolCalls: []scripted.Call{
				{ID: "call_sf", Name: "get_weather", Arguments: json.RawMessage(`{"city":"San Francisco"}`)},
				{ID: "call_cph", Name: "get_weather", Arguments: json.RawMessage(`{"city":"Copenhagen"}`)},
			},
			Usage: fact.TokenUsage{Prompt: 54, Completion: 61},
		},
		{
			Text: "San Francisco has fog and 14 degrees, as ever. Copenhagen has sun and 21 degrees, which is less usual. " +
				"Every word of this is in the log: stop me with kill -9, start helixd again, and I continue where I was.",
			Usage: fact.TokenUsage{Prompt: 132, Completion: 58},
		},
	}
}

func weatherTool() agentloop.Tool {
	type input struct {
		City string `json:"city" jsonschema:"the city to look at"`
	}
	type report struct {
		City    string `json:"city"`
		Sky     string `json:"sky"`
		Celsius int    `json:"celsius"`
	}
	type notes struct {
		Looked map[string]string `json:"looked"`
	}
	known := map[string]report{
		"San Francisco": {Sky: "fog", Celsius: 14},
		"Copenhagen":    {Sky: "sun", Celsius: 21},
	}
	return agentloop.NewTool("get_weather", "Current weather of a city.",
		func(ctx context.Context, c *agentloop.Call, in input) (report, error) {
			r, ok := known[in.City]
			if !ok {
				return report{}, fmt.Errorf("no station in %s", in.City)
			}
			r.City = in.City
			if err := c.Emit(ctx, "progress", map[string]any{"asked": in.City}); err != nil {
				return report{}, err
			}
			return r, agentloop.UpdateState(c, func(n *notes) error {
				if n.Looked == nil {
					n.Looked = map[string]string{}
				}
				n.Looked[in.City] = r.Sky
				return nil
			})
		})
}
