package demo

import (
	"context"
	"encoding/json"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
)

// waitingAgents are demo agents whose runs wait for others: janitor for an
// approval, guide for its client, editor for its sub-agent writer.
func waitingAgents(opts *scripted.Options) []agentloop.Agent {
	script := func(ask, name, args, then string) []scripted.Turn {
		return []scripted.Turn{
			{Text: ask, ToolCalls: []scripted.Call{{Name: name, Arguments: json.RawMessage(args)}}},
			{Text: then},
		}
	}
	return []agentloop.Agent{
		{
			Name:         "janitor",
			Description:  "Asks for approval before it deletes anything.",
			SystemPrompt: "You keep the folder tidy.",
			Model: scripted.New(script("Two drafts are older than a year. May I delete them?",
				"delete_files", `{"paths":["draft-1.md","draft-2.md"]}`,
				"That is settled. What you said and what came of it are in the log, next to each other."), opts),
			Tools:        []agentloop.Tool{deleteTool()},
			InitialState: json.RawMessage(`{"deleted":[]}`),
		},
		{
			Name:         "guide",
			Description:  "Asks its client where it is.",
			SystemPrompt: "You show people around.",
			Model: scripted.New(script("Let me see where you are.", "get_location", `{}`,
				"Thank you. From there it is a short walk to the harbour."), opts),
			Tools: []agentloop.Tool{{
				Name: "get_location", Description: "Where the user is.", Client: true,
				OutputSchema: json.RawMessage(`{"type":"object","properties":{"lat":{"type":"number"},"lon":{"type":"number"}},"required":["lat","lon"]}`),
			}},
		},
		{
			Name:         "editor",
			Description:  "Has its sub-agent write, and comments on it.",
			SystemPrompt: "You edit a newsletter.",
			Model: scripted.New(script("I had better leave that to the writer.", agentloop.SubAgentPrefix+"writer",
				`{"message":"A headline about durable agents, please."}`, "The headline stands."), opts),
			SubAgents: []agentloop.SubAgent{{Agent: "writer"}},
		},
		{
			Name:         "writer",
			Description:  "Writes a headline.",
			SystemPrompt: "You write headlines.",
			Model: scripted.New([]scripted.Turn{{
				Reasoning: "Short is good.",
				ToolCalls: []scripted.Call{{Name: agentloop.FinishTool, Arguments: json.RawMessage(`{"headline":"Nothing was lost"}`)}},
			}}, opts),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"headline":{"type":"string"}},"required":["headline"]}`),
		},
	}
}

// deleteTool only notes what it would delete.
func deleteTool() agentloop.Tool {
	type input struct {
		Paths []string `json:"paths" jsonschema:"the files to delete"`
	}
	type folder struct {
		Deleted []string `json:"deleted"`
	}
	tool := agentloop.NewTool("delete_files", "Delete files for good.",
		func(_ context.Context, c *agentloop.Call, in input) (folder, error) {
			return folder{in.Paths}, agentloop.UpdateState(c, func(f *folder) error {
				f.Deleted = append(f.Deleted, in.Paths...)
				return nil
			})
		})
	tool.RequireApproval = agentloop.AlwaysApprove
	return tool
}
