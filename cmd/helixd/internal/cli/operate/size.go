package operate

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/sizing"
)

type sizeCmd struct {
	Sessions  float64 `default:"10000" help:"Sessions a day."`
	Tokens    float64 `default:"1000" help:"Tokens that the models of a session emit."`
	Rate      float64 `default:"50" help:"Tokens that a running session emits in a second."`
	Peak      float64 `default:"4" help:"How many times the day's mean the busiest minutes have."`
	Followers float64 `default:"1" help:"Clients that follow a running session."`
	Idle      float64 `default:"0" help:"Clients that follow sessions in which nothing happens."`
	Days      float64 `default:"30" help:"Days for which records are kept (retention.maxAge)."`
	LogDays   float64 `default:"3" help:"Days for which records stay in the log, before helixd retain --purge-older-than leaves them to the segments."`
	Nodes     float64 `default:"1" help:"Nodes of an embedded cluster."`
	Replicas  float64 `help:"Nodes that keep each record; 0: 3 if there are three nodes, else 1." default:"0"`
	JSON      bool    `help:"Print JSON, with the constants and where they come from."`
}

// Help is shown by helixd size --help.
func (sizeCmd) Help() string {
	return "The figures are estimates from measurements on two cores; docs/operations/sizing.md has the formulas and says how to measure your own load."
}

// Run prints what a load needs.
func (c sizeCmd) Run(p *flags.Process) error {
	l := sizing.Load{
		Sessions: c.Sessions, Tokens: c.Tokens, Rate: c.Rate, Peak: c.Peak, Followers: c.Followers, Idle: c.Idle,
		Days: c.Days, LogDays: c.LogDays, Nodes: c.Nodes, Replicas: c.Replicas,
	}
	if l.Replicas == 0 {
		l.Replicas = 1
		if l.Nodes >= 3 {
			l.Replicas = 3
		}
	}
	e, err := sizing.Of(l)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(e)
	}
	const gib = 1 << 30
	fmt.Fprintf(p.Stdout, "at the peak: %.0f runs at once, %.0f tokens/s, %.0f clients\n", math.Ceil(e.Runs), e.TokensPerSecond, math.Ceil(e.Clients))
	fmt.Fprintf(p.Stdout, "stored once: %.1f GiB in the log, %.1f GiB in segments\n", e.Log/gib, e.Segments/gib)
	fmt.Fprintf(p.Stdout, "each of %.0f nodes (%.0f replicas): %.0f GiB of disk, %.1f GiB of memory, %.1f cores\n",
		l.Nodes, l.Replicas, math.Ceil(e.Node.Disk/gib), e.Node.Memory/gib, e.Node.Cores)
	for _, limit := range e.Limits {
		fmt.Fprintln(p.Stdout, "limit:", limit)
	}
	return nil
}
