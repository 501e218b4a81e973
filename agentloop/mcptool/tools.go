package mcptool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
)

// maxTools is how many tools a server may have, and maxToolBytes how much their descriptions and
// schemas may hold together, in bytes.
const (
	maxTools     = 1000
	maxToolBytes = 16 << 20
)

// toolsOf makes agent tools of a server's.
func (c *Client) toolsOf(list []*mcp.Tool) ([]agentloop.Tool, error) {
	names := &namer{server: c.server.Name, taken: map[string]string{}}
	tools := make([]agentloop.Tool, 0, len(list))
	for _, t := range list {
		name, err := names.name(t.Name)
		if err != nil {
			return nil, err
		}
		tool := agentloop.Tool{
			Name: name, Description: t.Description, Timeout: c.opts.CallTimeout,
			Execute: func(ctx context.Context, call *agentloop.Call, args json.RawMessage) (any, error) {
				return c.call(ctx, t.Name, call, args)
			},
		}
		if t.InputSchema != nil {
			schema, err := json.Marshal(t.InputSchema)
			if err != nil {
				return nil, fmt.Errorf("tool %q: input schema: %w", t.Name, err)
			}
			if err := checkSchema(schema); err == nil {
				tool.InputSchema = schema
			} else {
				c.log.Warn("the input schema of an MCP tool can't be used: it takes any object",
					eventlog.LogTool, t.Name, "error", cut(err.Error()))
				tool.Description = describe(t.Description, schema)
			}
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// list returns all of the server's tools.
func list(ctx context.Context, s *mcp.ClientSession) ([]*mcp.Tool, error) {
	var tools []*mcp.Tool
	size := 0
	for t, err := range s.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(t) // of pages that have been decoded
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", t.Name, err)
		}
		size += len(raw)
		switch {
		case len(tools) == maxTools:
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		case size > maxToolBytes:
			return nil, fmt.Errorf("its tools have more than %d bytes", maxToolBytes)
		}
		tools = append(tools, t)
	}
	return tools, nil
}
