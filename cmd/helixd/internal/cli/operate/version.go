package operate

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/eventlog/version"
)

type versionCmd struct {
	JSON bool `help:"Print JSON: version, commit, date, go, modified, platform, format."`
}

func (c versionCmd) Run(p *flags.Process) error {
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(version.This())
	}
	_, err := fmt.Fprintln(p.Stdout, "helixd", version.Current())
	return err
}
