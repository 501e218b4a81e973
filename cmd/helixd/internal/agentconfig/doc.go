// Package agentconfig makes the agents of a configuration, with their tools, their MCP
// servers and their memories.
package agentconfig
