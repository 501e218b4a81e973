package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// openMCP returns the agents with the tools of their MCP servers, which are in
// use until the daemon is closed. Each entry is a server of its own: two
// agents that name the same command run it twice.
func (d *daemon) openMCP(ctx context.Context, c *config.Config, agents []agentloop.Agent, log *slog.Logger) ([]agentloop.Agent, error) {
	agents = slices.Clone(agents)
	for i, a := range agents {
		owners := map[string]string{} // of the tools, by name
		for _, t := range a.Tools {
			owners[t.Name] = "tools." + t.Name
		}
		for j, m := range c.Agents[a.Name].MCP {
			key := fmt.Sprintf("mcp[%d]", j)
			at := "agents." + a.Name + "." + key
			client, err := mcptool.Open(ctx, mcptool.Server{
				Name: m.Name, Command: m.Command, Env: revealed(m.Env), URL: m.URL, Headers: revealed(m.Headers),
			}, &mcptool.Options{Logger: log, Version: version(), CallTimeout: m.Timeout})
			if err != nil {
				return nil, c.At(at, err)
			}
			d.onClose(func() { client.Close() })
			for _, t := range client.Tools() {
				if owner, ok := owners[t.Name]; ok {
					return nil, c.At(at, fmt.Errorf("its tool %s has the same name as %s", t.Name, owner))
				}
				owners[t.Name] = "one of " + key
			}
			agents[i].Tools = append(slices.Clip(agents[i].Tools), client.Tools()...)
		}
	}
	return agents, nil
}
