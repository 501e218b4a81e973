package agentconfig

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog/version"
)

// MCPServers are the MCP servers of a daemon's agents. Each entry of an agent
// is its own server: two agents that name the same command run it twice.
// One that a reload leaves as it was continues; one that no agent has any more
// ends when the last run does that began with it.
type MCPServers struct {
	log     *slog.Logger
	waiting sync.WaitGroup // for runs to end

	mu  sync.Mutex
	all []*mcpServer
	// used are those of the agents of now; a reload has them.
	used []*mcpServer
}

type mcpServer struct {
	agent  string
	of     config.MCPServer
	client *mcptool.Client
	users  int // guarded: how many sets of agents
}

// NewMCPServers returns a set without any server.
func NewMCPServers(log *slog.Logger) *MCPServers { return &MCPServers{log: log} }

// Open returns the agents with the tools of their MCP servers, which run until
// they are released.
func (m *MCPServers) Open(ctx context.Context, c *config.Config, agents []agentloop.Agent) (with []agentloop.Agent, servers []*mcpServer, err error) {
	defer func() {
		if err != nil {
			m.Release(servers)
			servers = nil
		}
	}()
	with = slices.Clone(agents)
	for i, a := range with {
		owners := map[string]string{} // of the tools, by name
		for _, t := range a.Tools {
			owners[t.Name] = "tools." + t.Name
		}
		for j, of := range c.Agents[a.Name].MCP {
			key := fmt.Sprintf("mcp[%d]", j)
			at := "agents." + a.Name + "." + key
			s, err := m.server(ctx, a.Name, of)
			if err != nil {
				return nil, servers, c.At(at, err)
			}
			servers = append(servers, s)
			for _, t := range s.client.Tools() {
				if owner, ok := owners[t.Name]; ok {
					return nil, servers, c.At(at, fmt.Errorf("its tool %s has the same name as %s", t.Name, owner))
				}
				owners[t.Name] = "one of " + key
			}
			with[i].Tools = append(slices.Clip(with[i].Tools), s.client.Tools()...)
		}
	}
	return with, servers, nil
}

// server returns the one that runs, or a new one. Only one goroutine opens.
func (m *MCPServers) server(ctx context.Context, agent string, of config.MCPServer) (*mcpServer, error) {
	m.mu.Lock()
	for _, s := range m.all {
		if s.agent == agent && reflect.DeepEqual(s.of, of) {
			s.users++
			m.mu.Unlock()
			return s, nil
		}
	}
	m.mu.Unlock()
	client, err := mcptool.Open(ctx, mcptool.Server{
		Name: of.Name, Command: of.Command, Env: config.Revealed(of.Env), URL: of.URL, Headers: config.Revealed(of.Headers),
	}, &mcptool.Options{Logger: m.log, Version: version.Current(), CallTimeout: of.Timeout, ConnectTimeout: of.ConnectTimeout, StopTimeout: of.StopTimeout})
	if err != nil {
		return nil, err
	}
	s := &mcpServer{agent: agent, of: of, client: client, users: 1}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, s)
	return s, nil
}

// Release ends the servers that no other configuration uses.
func (m *MCPServers) Release(servers []*mcpServer) {
	for _, s := range servers {
		m.mu.Lock()
		s.users--
		last := s.users == 0
		if last {
			m.all = slices.DeleteFunc(m.all, func(o *mcpServer) bool { return o == s })
		}
		m.mu.Unlock()
		if last {
			s.client.Close()
		}
	}
}

// Use says that the agents have these now. Those of before are released when
// unused is closed; it may be nil, if there were none.
func (m *MCPServers) Use(servers []*mcpServer, unused <-chan struct{}) {
	before := m.used
	m.used = servers
	if len(before) > 0 {
		m.waiting.Go(func() {
			<-unused
			m.Release(before)
		})
	}
}

// Close ends all of them. The loop has stopped.
func (m *MCPServers) Close() {
	m.waiting.Wait()
	m.Release(m.used)
	m.used = nil
}
