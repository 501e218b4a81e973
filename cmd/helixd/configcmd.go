package main

import "github.com/helixd/helixd/cmd/helixd/config"

type configCmd struct {
	Schema configSchemaCmd `cmd:"" help:"Print the JSON Schema of helix.yaml, for editors."`
}

type configSchemaCmd struct{}

// Run prints the schema.
func (configSchemaCmd) Run(p *process) error {
	_, err := p.stdout.Write(config.Schema())
	return err
}
