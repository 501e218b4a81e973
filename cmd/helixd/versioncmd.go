package main

import (
	"encoding/json"
	"fmt"
)

type versionCmd struct {
	JSON bool `help:"Print JSON: version, commit, date, go, modified, platform."`
}

func (c versionCmd) Run(p *process) error {
	if c.JSON {
		return json.NewEncoder(p.stdout).Encode(thisBuild())
	}
	_, err := fmt.Fprintln(p.stdout, "helixd", version())
	return err
}
