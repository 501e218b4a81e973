package agentconfig

import (
	"errors"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog"
	eventlogmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

// Equip gives the agents their memories.
func Equip(m *memory.Manager, c *config.Config, agents []agentloop.Agent) error {
	for i, a := range agents {
		of := c.Agents[a.Name].Memory
		if of == nil {
			continue
		}
		at := "agents." + a.Name + ".memory"
		if m == nil {
			return c.At(at, errors.New("needs a restart: this node was started without read models"))
		}
		err := m.Equip(&agents[i], memory.Policy{
			Scope: eventlog.MemoryScopeKind(of.Scope), Recall: of.Recall, Save: of.Save, Search: of.Search,
		})
		if err != nil {
			return c.At(at, err)
		}
	}
	return nil
}

// UnusedMemories returns a manager for agents that are looked at and not run.
func UnusedMemories() *memory.Manager {
	return memory.New(memory.Options{Log: eventlogmemory.New(), Index: struct{ readmodel.Memories }{}})
}
