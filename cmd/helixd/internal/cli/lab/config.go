package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// file is lab.yaml. Paths in it are relative to its folder.
type file struct {
	Cohort    string             `json:"cohort"`    // the cohort's file
	Candidate string             `json:"candidate"` // the helix.yaml whose agents are tried
	Baseline  string             `json:"baseline"`  // recorded, or a helix.yaml
	Models    string             `json:"models"`    // recorded, live, script, or a script's file
	Unmatched string             `json:"unmatched"` // refuse, simulate or allow
	Simulate  []simulation       `json:"simulate"`
	Safe      []string           `json:"safe"` // tools without side effects, which allow calls
	Assert    []result.Assertion `json:"assert"`
	Accept    []result.Kind      `json:"accept"` // kinds of differences that are no regression
	Judge     *judging           `json:"judge"`
	Budget    budget             `json:"budget"`
	Repeat    int                `json:"repeat"`

	suite   *result.Suite
	scripts map[string][]config.Turn // of the script's file, by agent
	at      func(key, text string) error
}

// named says at which key a file is named that does not exist.
func (f *file) named(key string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return f.at(key, err.Error())
	}
	return err
}

// What models and unmatched may be.
const (
	recorded = "recorded"
	live     = "live"
	script   = "script"

	refuse   = "refuse"
	simulate = "simulate"
	allow    = "allow"
)

// simulation answers calls that were not recorded.
type simulation struct {
	Tool string `json:"tool"` // a name, or a pattern such as get_*
	// Arguments are members that the call's arguments have; empty: any.
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Error     string          `json:"error"` // the call fails with this message
}

// judging is a model that says whether a session went well.
type judging struct {
	Model  config.Model    `json:"model"`
	Prompt string          `json:"prompt"`
	Labels map[string]bool `json:"labels"` // people's, by session: whether the recorded one is good
}

// budget bounds what the lab spends.
type budget struct {
	Cost     float64       `json:"cost"`     // of live models, in the currency of the prices; 0: no bound
	Tokens   int           `json:"tokens"`   // of live models; 0: no bound
	Time     time.Duration `json:"time"`     // of the lab; 0: no bound
	Parallel int           `json:"parallel"` // sessions at the same time; 0: the number of cores
}

// load reads lab.yaml. Its error has a line for each problem.
func load(path string) (*file, error) {
	f := &file{Baseline: recorded, Models: recorded, Unmatched: refuse, Repeat: 1}
	read, err := config.Decode(path, f, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	at := read.At
	f.at = at
	var errs []error
	need := func(ok bool, key, text string) {
		if !ok {
			errs = append(errs, at(key, text))
		}
	}
	need(f.Cohort != "", "cohort", "is needed: the file that helixd lab cohort create has written")
	need(f.Candidate != "", "candidate", "is needed: the helix.yaml whose agents are tried")
	need(slices.Contains([]string{refuse, simulate, allow}, f.Unmatched), "unmatched", "must be refuse, simulate or allow")
	need(f.Unmatched != simulate || len(f.Simulate) > 0, "simulate", "is needed with unmatched: simulate")
	need(f.Unmatched == simulate || len(f.Simulate) == 0, "simulate", "is for unmatched: simulate")
	need(f.Unmatched == allow || len(f.Safe) == 0, "safe", "is for unmatched: allow")
	for i, s := range f.Simulate {
		key := indexed("simulate", i)
		need(s.Tool != "", key+".tool", "must not be empty")
		_, err := pathpkg.Match(s.Tool, "")
		need(err == nil, key+".tool", "is no name and no pattern such as get_*")
		need((len(s.Result) > 0) != (s.Error != ""), key, "needs result or error, one of them")
	}
	for i, k := range f.Accept {
		need(slices.Contains(acceptable, k), indexed("accept", i), "must be one of "+words(acceptable))
	}
	need(f.Repeat >= 1, "repeat", "must be at least 1")
	need(f.Budget.Cost >= 0, "budget.cost", "must not be negative")
	need(f.Budget.Tokens >= 0, "budget.tokens", "must not be negative")
	need(f.Budget.Time >= 0, "budget.time", "must not be negative")
	need(f.Budget.Parallel >= 0, "budget.parallel", "must not be negative")
	if f.Judge != nil {
		need(f.Judge.Prompt != "", "judge.prompt", "must not be empty: say what a good session is")
		if err := read.CheckModel("judge.model", f.Judge.Model); err != nil {
			errs = append(errs, err)
		}
	}
	f.suite, err = result.NewSuite(f.Assert)
	for _, e := range split(err) {
		if field, ok := errors.AsType[*result.FieldError](e); ok {
			e = at(indexed("assert", field.Index)+"."+field.Field, field.Err.Error())
		}
		errs = append(errs, e)
	}
	dir := filepath.Dir(path)
	for _, name := range []*string{&f.Cohort, &f.Candidate, &f.Baseline, &f.Models} {
		if !slices.Contains([]string{"", recorded, live, script}, *name) && !filepath.IsAbs(*name) {
			*name = filepath.Join(dir, *name)
		}
	}
	if !slices.Contains([]string{recorded, live, script}, f.Models) {
		f.scripts = map[string][]config.Turn{}
		_, err := config.Decode(f.Models, &f.scripts, os.LookupEnv)
		if errors.Is(err, os.ErrNotExist) {
			err = at("models", "must be recorded, live, script or a script's file: "+err.Error())
		}
		errs = append(errs, err)
	}
	return f, errors.Join(errs...)
}

// acceptable are the kinds that accept may name.
var acceptable = []result.Kind{
	result.ModelAnswer, result.ToolCall, result.ToolResult, result.Approval, result.SubAgent, result.Memory, result.File, result.Output, result.Error,
}

func words(kinds []result.Kind) string {
	var all []string
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

func split(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	return []error{err}
}

// indexed is the key of a list's element.
func indexed(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }
