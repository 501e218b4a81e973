package agentconfig

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog/version"
)

// openAtOnce is how many MCP servers are opened at the same time.
const openAtOnce = 8

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
// they are released. It opens servers at the same time, each within its ConnectTimeout, and
// gives up when one can't be opened.
func (m *MCPServers) Open(ctx context.Context, c *config.Config, agents []agentloop.Agent) (with []agentloop.Agent, servers []*mcpServer, err error) {
	defer func() {
		if err != nil {
			m.Release(servers)
			servers = nil
		}
	}()
	opened := make([][]*mcpServer, len(agents))
	g, opening := errgroup.WithContext(ctx)
	g.SetLimit(openAtOnce)
	for i, a := range agents {
		opened[i] = make([]*mcpServer, len(c.Agents[a.Name].MCP))
		for j, of := range c.Agents[a.Name].MCP {
			g.Go(func() (err error) {
				if err = opening.Err(); err == nil {
					opened[i][j], err = m.server(opening, a.Name, of)
				}
				if err != nil {
					return c.At(mcpKey(a.Name, j), err)
				}
				return nil
			})
		}
	}
	err = g.Wait()
	for _, s := range slices.Concat(opened...) {
		if s != nil {
			servers = append(servers, s)
		}
	}
	if err != nil {
		return nil, servers, err
	}
	with = slices.Clone(agents)
	for i, a := range with {
		owners := map[string]string{} // of the tools, by name
		for _, t := range a.Tools {
			owners[t.Name] = "tools." + t.Name
		}
		for j, s := range opened[i] {
			for _, t := range s.client.Tools() {
				if owner, ok := owners[t.Name]; ok {
					return nil, servers, c.At(mcpKey(a.Name, j), fmt.Errorf("its tool %s has the same name as %s", t.Name, owner))
				}
				owners[t.Name] = fmt.Sprintf("one of mcp[%d]", j)
			}
			with[i].Tools = append(slices.Clip(with[i].Tools), s.client.Tools()...)
		}
	}
	return with, servers, nil
}

// mcpKey is the key of an agent's n-th server in the configuration.
func mcpKey(agent string, n int) string { return fmt.Sprintf("agents.%s.mcp[%d]", agent, n) }

// server returns the one that runs, or a new one. Only one goroutine opens the same server.
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
