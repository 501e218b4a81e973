package daemon

import (
	"fmt"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

// ConfigCommands are about the configuration file.
type ConfigCommands struct {
	Check  configCheckCmd  `cmd:"" help:"Check a configuration file as helixd serve does, and start nothing."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of helix.yaml, for editors."`
}

type configCheckCmd struct {
	File string `arg:"" optional:"" default:"helix.yaml" type:"path" help:"Configuration file."`
	JSON bool   `help:"Print JSON."`
}

// Run prints the agents of a configuration without faults. Otherwise the error has a line
// for each fault, with its place and key.
func (c configCheckCmd) Run(p *flags.Process) error {
	_, agents, err := ServeCommand{Configuration: flags.Configuration{Config: c.File}}.Configure(p)
	if err != nil {
		return err
	}
	names := []string{}
	for _, a := range agents {
		names = append(names, a.Name)
	}
	words := fmt.Sprintf("%s: no fault; %s: %s", c.File, terminal.Count(len(names), "agent"), strings.Join(names, ", "))
	return terminal.Result(p.Stdout, c.JSON, struct {
		File   string   `json:"file"`
		Agents []string `json:"agents"`
	}{c.File, names}, terminal.Printable(words))
}

type configSchemaCmd struct{}

// Run prints the schema.
func (configSchemaCmd) Run(p *flags.Process) error {
	_, err := p.Stdout.Write(config.Schema())
	return err
}
