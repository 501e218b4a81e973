package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/lab"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	labjudge "github.com/helixd/helixd/agentloop/lab/judge"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/version"
)

// drive runs the lab. There is a report beside the error if the daemon alone does not have it.
func drive(ctx context.Context, p *flags.Process, c runCmd, f *file, progress func(done, total int)) (*result.Report, error) {
	recording, err := open(f.Cohort)
	if err != nil {
		return nil, f.named("cohort", err)
	}
	o := lab.Options{
		Name: filepath.Base(f.Cohort), Cohort: recording, Live: f.Models == live, Unmatched: lab.Unmatched(f.Unmatched), Safe: f.Safe, LiveTools: c.Live,
		Rules: result.Rules{Suite: f.suite, Accept: f.Accept}, Repeat: f.Repeat, Parallel: f.Budget.Parallel, Progress: progress,
		Budget: lab.Budget{Tokens: int64(f.Budget.Tokens), Cost: f.Budget.Cost, Time: f.Budget.Time},
	}
	for _, s := range f.Simulate {
		o.Simulate = append(o.Simulate, lab.Simulation{Tool: s.Tool, Arguments: s.Arguments, Result: s.Result, Error: s.Error})
	}
	state := sha256.New()
	candidate, err := config.Load(f.Candidate, f.getenv())
	if err != nil {
		return nil, f.named("candidate", err)
	}
	if o.Candidate, err = agentsOf(candidate, recording); err != nil {
		return nil, err
	}
	o.Prices = settings.Prices(candidate.Prices)
	files := []string{c.File, f.Candidate}
	if f.Baseline != recorded {
		baseline, err := config.Load(f.Baseline, f.getenv())
		if err != nil {
			return nil, f.named("baseline", err)
		}
		if o.Baseline, err = agentsOf(baseline, recording); err != nil {
			return nil, err
		}
		files = append(files, f.Baseline)
	}
	f.scriptAgents(o.Candidate)
	if !slices.Contains([]string{recorded, live, script}, f.Models) {
		files = append(files, f.Models)
	}
	if f.Judge != nil {
		m, err := agentconfig.Model(f.Judge.Model)
		if err != nil {
			return nil, fmt.Errorf("judge.model: %w", err)
		}
		o.Judge, o.Labels = labjudge.New(m, f.Judge.Prompt), f.Judge.Labels
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(state, "%d %s\n", len(text), text)
	}
	// What the files refer to, such as prompts in files of their own, is part of what they say.
	described, err := json.Marshal([]any{
		version.Current(), recording.Header.Hash, f.Repeat, c.Live, describe(o.Candidate), describe(o.Baseline), f.Judge, f.Simulate, f.Assert, f.scripts,
	})
	if err != nil {
		return nil, err
	}
	state.Write(described)
	o.State = hex.EncodeToString(state.Sum(nil))
	dir := folderOf(c.File, c.Dir)
	log, done, err := openLog(ctx, dir, p.Log)
	if err != nil {
		return nil, err
	}
	defer done()
	o.Log = log
	if c.Server != "" {
		given, err := c.labels(ctx, recording.Header.Hash)
		if err != nil {
			return nil, err
		}
		maps.Copy(given, o.Labels)
		o.Labels, o.Taken = given, c.has
	}
	report, err := lab.Run(ctx, o)
	if err != nil {
		return nil, agentconfig.AtKey(candidate, err, nil)
	}
	if c.Server != "" {
		err = c.push(ctx, log, report.Lab)
	}
	return report, err
}

// getenv looks up environment variables. Unless models are live, those that a helix.yaml refers to need
// not be set: the key of a provider is of no use then, and continuous integration has none.
func (f *file) getenv() func(string) (string, bool) {
	if f.Models == live {
		return os.LookupEnv
	}
	return withoutSecrets
}

// withoutSecrets looks up environment variables, of which those that a helix.yaml refers to need not be
// set.
func withoutSecrets(name string) (string, bool) {
	value, ok := os.LookupEnv(name)
	if !ok && !strings.HasPrefix(name, "HELIX_") { // those set keys of the configuration
		return "not-set", true
	}
	return value, ok
}

func open(name string) (*cohort.Cohort, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c, err := cohort.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// agentsOf are the agents of a configuration. MCP servers are not started: their tools are those
// that were called.
func agentsOf(c *config.Config, recording *cohort.Cohort) ([]lab.Agent, error) {
	agents, err := agentconfig.Agents(c)
	if err != nil {
		return nil, err
	}
	for i := range agents {
		a := &agents[i]
		for _, server := range c.Agents[a.Name].MCP {
			for _, name := range lab.RecordedTools(recording, a.Name) {
				if strings.HasPrefix(name, server.Name+"_") && !slices.ContainsFunc(a.Tools, func(t agentloop.Tool) bool { return t.Name == name }) {
					a.Tools = append(a.Tools, agentloop.Tool{Name: name, Description: "A tool of the MCP server " + server.Name + ".",
						Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
							return nil, fmt.Errorf("the lab starts no MCP servers")
						}})
				}
			}
		}
	}
	if err := agentconfig.Equip(agentconfig.UnusedMemories(), c, agents); err != nil {
		return nil, err
	}
	out := lab.Agents(agents...)
	for i := range out {
		m := c.Agents[out[i].Name].Model
		m.Script, m.ScriptDelay = nil, 0 // what a script says is no part of a request
		settings, err := json.Marshal(m) // without secrets
		if err != nil {
			return nil, err
		}
		out[i].ModelID = string(settings)
	}
	return out, nil
}

// scriptAgents has models answer by scripts: those of models.yaml, or their own.
func (f *file) scriptAgents(agents []lab.Agent) {
	for i := range agents {
		a := &agents[i]
		if turns, ok := f.scripts[a.Name]; ok {
			a.Model, a.Scripted = scripted.New(agentconfig.Turns(turns), nil), true
		} else if p, is := a.Model.(interface{ Provider() string }); is && f.Models == script {
			a.Scripted = p.Provider() == string(config.ProviderScripted)
		}
	}
}

// describe is what of agents the lanes depend on and can be written.
func describe(agents []lab.Agent) (all []any) {
	for _, a := range agents {
		var tools []any
		for _, t := range a.Tools {
			tools = append(tools, []any{t.Name, t.Description, t.InputSchema, t.Client})
		}
		all = append(all, []any{a.Name, a.SystemPrompt, a.OutputSchema, a.ModelID, a.Scripted, tools})
	}
	return all
}
