package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/projector"
)

type createCmd struct {
	source.DaemonFlags
	File   string `arg:"" help:"The file to write." type:"path"`
	Backup string `help:"Read the sessions from this backup, in place of a daemon." type:"path"`
	JSON   bool   `help:"Print JSON."`

	Agent     string  `help:"Only sessions of this agent type." aliases:"agent-type"`
	Status    string  `help:"Only sessions of this status: active, paused, interrupted, completed or failed."`
	Since     string  `help:"Only sessions created since then: a day (UTC) such as 2026-01-31, a time of RFC 3339, or how long ago, such as 168h."`
	Tag       string  `help:"Only sessions with this tag."`
	User      string  `help:"Only sessions of this user."`
	Tool      string  `help:"Only sessions in which this tool was called."`
	Error     string  `help:"Only sessions in which a run or a call failed with this code."`
	Text      string  `help:"Only sessions in which a record contains this text."`
	MinTokens int64   `help:"Only sessions that used at least so many tokens."`
	MinCost   float64 `help:"Only sessions that cost at least so much, by the prices in the file of --prices."`
	Prices    string  `help:"A helix.yaml with the prices of models." type:"path" placeholder:"helix.yaml"`
	Limit     int     `help:"At most so many sessions; 0: all."`
	Seed      uint64  `help:"Chooses which sessions are taken if more match than the limit."`
	Redact    string  `help:"Rules, in YAML, for what to replace by placeholders." type:"path"`
}

// Run reads the sessions, redacts them and writes the file.
func (c createCmd) Run(p *flags.Process) error {
	o, err := c.options(time.Now())
	if err != nil {
		return flags.Misused(err)
	}
	if c.Prices != "" {
		priced, err := config.Load(c.Prices, withoutSecrets)
		if err != nil {
			return err
		}
		o.Filter.Prices = settings.Prices(priced.Prices)
	}
	if c.Redact != "" {
		text, err := os.ReadFile(c.Redact)
		if err != nil {
			return err
		}
		if o.Rules, err = cohort.ParseRules(text); err != nil {
			return fmt.Errorf("%s: %w", c.Redact, err)
		}
	}
	sessions, done, err := c.sessions(p.Ctx, o.Filter)
	if err != nil {
		return err
	}
	defer done()
	made, err := cohort.Create(p.Ctx, sessions, o)
	if err != nil {
		return source.Explained(err)
	}
	if err := settings.WriteWhole(c.File, made.Write); err != nil {
		return err
	}
	head := made.Header
	for _, why := range slices.Sorted(maps.Keys(head.Skipped)) {
		fmt.Fprintf(p.Stderr, "%s left out: %s\n", terminal.Count(head.Skipped[why], "session"), why)
	}
	if c.JSON {
		return json.NewEncoder(p.Stdout).Encode(head)
	}
	_, err = fmt.Fprintf(p.Stdout, "%s: %s of %d that match, %s, %s redacted\nhash %s\n", terminal.Printable(c.File),
		terminal.Count(head.Sessions, "session"), head.Found, terminal.Count(head.Records, "record"), terminal.Count(head.Redacted, "value"), head.Hash)
	return err
}

func (c createCmd) options(now time.Time) (o cohort.Options, err error) {
	o = cohort.Options{Limit: c.Limit, Seed: c.Seed, Filter: cohort.Filter{
		Agent: c.Agent, Status: projector.SessionStatus(c.Status), Tag: c.Tag, User: c.User, Tool: c.Tool, Error: c.Error, Text: c.Text, Tokens: c.MinTokens, Cost: c.MinCost,
	}}
	switch {
	case c.Limit < 0:
		return o, errors.New("--limit must not be negative")
	case !(c.MinCost >= 0):
		return o, errors.New("--min-cost must not be negative")
	case (c.MinCost > 0) != (c.Prices != ""):
		return o, errors.New("--min-cost needs --prices, a helix.yaml with prices, and the other way round")
	}
	if c.Since == "" {
		return o, nil
	}
	if ago, err := time.ParseDuration(c.Since); err == nil && ago >= 0 {
		o.Filter.Since = now.Add(-ago).UTC().Truncate(time.Millisecond)
		return o, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, c.Since); err == nil {
			o.Filter.Since = at.UTC()
			return o, nil
		}
	}
	return o, fmt.Errorf("--since: %q is no day, time or duration", c.Since)
}

// sessions are those of the backup, or those that the daemon finds for the filter.
func (c createCmd) sessions(ctx context.Context, f cohort.Filter) (sessions iter.Seq2[cohort.Source, error], done func(), err error) {
	if c.Backup != "" {
		file, err := os.Open(c.Backup)
		if err != nil {
			return nil, nil, err
		}
		return cohort.FromBackup(ctx, file), func() { file.Close() }, nil
	}
	s := c.Connect()
	return s.Cohort(ctx, f), s.Close, nil
}
