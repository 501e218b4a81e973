package config

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

func subAgentsOf(a Agent) []agentloop.SubAgent {
	var subs []agentloop.SubAgent
	for _, s := range a.SubAgents {
		subs = append(subs, agentloop.SubAgent(s))
	}
	return subs
}

func persistentAgentsOf(a Agent) []agentloop.PersistentAgent {
	var agents []agentloop.PersistentAgent
	for _, p := range a.PersistentAgents {
		agents = append(agents, agentloop.PersistentAgent{Agent: p.Agent, Mode: agentloop.PersistentMode(p.Mode), Description: p.Description})
	}
	return agents
}

func remoteAgentsOf(a Agent) []agentloop.RemoteAgent {
	var agents []agentloop.RemoteAgent
	for _, name := range slices.Sorted(maps.Keys(a.RemoteAgents)) {
		r := a.RemoteAgents[name]
		agents = append(agents, agentloop.RemoteAgent{
			Name: name, Description: r.Description, AgentType: r.AgentType, Timeout: r.Timeout,
			InputSchema: r.InputSchema, OutputSchema: r.OutputSchema,
			StreamRetries: orNever(r.StreamRetries), StreamRetryBase: r.StreamRetryBase,
			Transport: remotehttp.New(r.URL, &remotehttp.Options{
				Headers: Revealed(r.Headers), HeaderFunc: headersFrom(r.HeaderFiles),
				MaxRetries: orNever(r.MaxRetries), RetryBaseDelay: r.RetryBaseDelay, Idle: r.IdleTimeout,
			}),
		})
	}
	return agents
}

// orNever is a configured number of retries as Go's options have it: 0 there is
// the default.
func orNever(retries int) int {
	if retries == 0 {
		return -1
	}
	return retries
}

// maxHeaderFile is the largest file that is sent as a header, in bytes.
const maxHeaderFile = 64 << 10

// headersFrom reads headers from files each time; nil: there are none.
func headersFrom(files map[string]string) func(context.Context) (map[string]string, error) {
	if len(files) == 0 {
		return nil
	}
	return func(context.Context) (map[string]string, error) {
		headers := make(map[string]string, len(files))
		for name, path := range files {
			value, err := headerFrom(path)
			if err != nil {
				return nil, fmt.Errorf("header %s: %w", name, err)
			}
			headers[name] = value
		}
		return headers, nil
	}
}

// headerFrom reads a file. Its errors don't show the content.
func headerFrom(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxHeaderFile+1))
	switch {
	case err != nil:
		return "", err
	case len(raw) > maxHeaderFile:
		return "", fmt.Errorf("%s has more than %d bytes", path, maxHeaderFile)
	}
	return strings.TrimSpace(string(raw)), nil
}
