package plan

import (
	"fmt"

	"github.com/helixd/helixd/agentloop"
)

// Compile checks agents, their schemas and what they refer to, by name.
func Compile(agents []agentloop.Agent) (map[string]*Agent, error) {
	defs := make(map[string]*Agent, len(agents))
	for _, a := range agents {
		d, err := define(a)
		if err != nil {
			return nil, err
		}
		if defs[a.Name] != nil {
			return nil, fmt.Errorf("agentloop: agent %s: defined twice", a.Name)
		}
		defs[a.Name] = d
	}
	for name, d := range defs {
		if err := d.link(defs); err != nil {
			return nil, fmt.Errorf("agentloop: agent %s: %w", name, err)
		}
		if err := d.linkApprovals(); err != nil {
			return nil, err
		}
	}
	return defs, nil
}
