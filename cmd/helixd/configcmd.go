package main

import (
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

type configCmd struct {
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of helix.yaml, for editors."`
}

type configSchemaCmd struct{}

// Run prints the schema.
func (configSchemaCmd) Run(p *flags.Process) error {
	_, err := p.Stdout.Write(config.Schema())
	return err
}
