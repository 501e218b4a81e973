package inspect

import (
	"errors"
	"fmt"
	"os"

	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/client"
)

// verifyFlags have a replay compare the session with the agents of a
// configuration, in place of showing it.
type verifyFlags struct {
	Verify bool   `help:"Ask the agents of --config for each decision that the session has recorded, and report the first one that they would make differently. No model and no tool is called, and nothing is written. Exit code 2 if one differs."`
	Config string `help:"With --verify: the configuration file whose agents are asked." type:"path"`
	RunID  string `name:"run" help:"With --verify: only the decisions of this run and of its sub-agents." placeholder:"ID"`
}

// check refuses flags that don't go together.
func (f verifyFlags) check(c replayCmd) error {
	switch {
	case !f.Verify && (f.Config != "" || f.RunID != ""):
		return errors.New("--config and --run go with --verify")
	case !f.Verify:
	case f.Config == "":
		return errors.New("--verify needs the agents of a configuration: --config FILE")
	case c.after() != 0 || c.To != nil || c.SSE:
		return errors.New("--verify looks at the whole session: --from, --to and --sse don't go with it")
	}
	return nil
}

// verify compares what was decided with what the agents would decide today.
func (c replayCmd) verify(p *flags.Process, s *source.Source) error {
	conf, err := config.Load(c.Config, os.LookupEnv)
	if err != nil {
		return err
	}
	agents, err := agentconfig.Agents(conf)
	if err != nil {
		return err
	}
	mcp := agentconfig.NewMCPServers(p.Log)
	agents, servers, err := mcp.Open(p.Ctx, conf, agents) // they say which tools there are
	if err != nil {
		return err
	}
	mcp.Use(servers, nil)
	defer mcp.Close()
	if err := agentconfig.Equip(agentconfig.UnusedMemories(), conf, agents); err != nil {
		return err
	}
	records := s.Records(p.Ctx, c.Session, client.RecordRange{Dead: true})
	found, err := verify.Session(p.Ctx, records, agents, &verify.Options{Run: c.RunID})
	if err != nil {
		return agentconfig.AtKey(conf, source.Explained(err), nil)
	}
	err = terminal.Result(p.Stdout, c.JSON, found, verified(found))
	if err == nil && found.Differs != nil {
		return fmt.Errorf("%w: a decision is another one today", flags.ErrDamage)
	}
	return err
}

func verified(found verify.Result) string {
	d := found.Differs
	if d == nil {
		return fmt.Sprintf("%s: %d records, %d decisions: today's agents make them all alike",
			terminal.Printable(found.SessionID), found.Records, found.Decisions)
	}
	where := fmt.Sprintf("%s at sequence %d: agent %s", terminal.Printable(d.SessionID), d.Sequence, terminal.Printable(d.AgentType))
	if d.Step > 0 {
		where += fmt.Sprintf(", step %d", d.Step)
	}
	if d.CallID != "" {
		where += ", call " + terminal.Printable(d.CallID)
	}
	return fmt.Sprintf("%s, %s\n  recorded: %s\n  today:    %s\n%d decisions were compared, this one included; what follows it was not",
		where, terminal.Printable(d.RunID), terminal.Printable(d.Recorded), terminal.Printable(d.Today), found.Decisions)
}
