package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
)

type runCmd struct {
	File   string   `arg:"" help:"The lab's file, lab.yaml."`
	Report string   `help:"Write the report to this file, as JSON." type:"path" placeholder:"FILE.json"`
	JUnit  string   `name:"junit" help:"Write the report to this file, as JUnit XML." type:"path" placeholder:"FILE.xml"`
	Repeat *int     `help:"Run each lane so many times, to tell flaky sessions apart; in place of lab.yaml's." placeholder:"N"`
	Live   []string `help:"Tools that are really called if the log does not answer, beside those declared safe; with unmatched: allow. May be given several times." placeholder:"TOOL"`
	Dir    string   `help:"Folder of the lab's log, from which a run that was killed continues; .lab/NAME beside the file if left out." type:"path"`
	JSON   bool     `help:"Print the report, as JSON."`
	shownOn
}

// Help is shown by helixd lab run --help.
func (runCmd) Help() string {
	return "Drives the agents of the candidate with the inputs of the recorded sessions, and compares what they decide with the baseline. What tools, approvals, memories and other " +
		"agents answered is taken from the log. Exit code 0: no regression. 1: regressions. 2: the lab could not judge, and says why. If GITHUB_STEP_SUMMARY names a file, a summary is appended to it."
}

// Validate refuses a number of repeats that is none.
func (c runCmd) Validate() error {
	if c.Repeat != nil && *c.Repeat < 1 {
		return errors.New("--repeat is at least 1")
	}
	return nil
}

// judgeFunc runs a lab; progress receives how many sessions are done.
type judgeFunc func(ctx context.Context, p *flags.Process, c runCmd, f *file, progress func(done, total int)) (*result.Report, error)

// Run judges. Every error but that of regressions has the exit code of a lab that could not judge.
func (c runCmd) Run(p *flags.Process) error {
	_, err := c.judge(p, drive)
	return err
}

// judge runs a lab and writes its report, which is nil if there is none.
func (c runCmd) judge(p *flags.Process, judge judgeFunc) (*result.Report, error) {
	f, err := load(c.File)
	if err == nil && len(c.Live) > 0 && f.Unmatched != allow {
		err = errors.New("--live needs unmatched: allow in " + c.File)
	}
	for _, name := range []string{c.Report, c.JUnit} { // before models are paid for
		if info, serr := os.Stat(filepath.Dir(name)); err == nil && name != "" && (serr != nil || !info.IsDir()) {
			err = fmt.Errorf("%s: there is no such folder for the report", filepath.Dir(name))
		}
	}
	if err != nil {
		return nil, flags.WithCode(result.ExitUnjudged, err)
	}
	if c.Repeat != nil {
		f.Repeat = *c.Repeat
	}
	var shown *terminal.Progress
	report, err := judge(p.Ctx, p, c, f, func(done, total int) {
		if shown == nil {
			shown = terminal.NewProgress(p.Stderr, "lab", int64(total), terminal.Things("session"))
		}
		shown.Set(int64(done))
	})
	shown.Close()
	if report != nil {
		err = errors.Join(err, c.write(p, report))
	}
	if err != nil {
		return nil, flags.WithCode(result.ExitUnjudged, err)
	}
	switch code := report.ExitCode(); code {
	case result.ExitRegressed:
		return report, flags.WithCode(code, errors.New(terminal.Count(len(report.Regressions), "regression")))
	case result.ExitUnjudged:
		return report, flags.WithCode(code, unjudged(report))
	}
	return report, nil
}

// write writes the report to where it is wanted, and says on the standard output what is in it.
func (c runCmd) write(p *flags.Process, r *result.Report) error {
	text, err := r.JSON()
	if err != nil {
		return err
	}
	if c.Report != "" {
		if err := os.WriteFile(c.Report, text, 0o644); err != nil {
			return err
		}
	}
	if c.JUnit != "" {
		xml, err := r.JUnit()
		if err == nil {
			err = os.WriteFile(c.JUnit, xml, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if err := summarize(os.Getenv("GITHUB_STEP_SUMMARY"), r); err != nil {
		return err
	}
	if c.JSON {
		_, err = terminal.JSON(p.Stdout).Write(text)
	} else {
		_, err = fmt.Fprint(p.Stdout, readable(r))
	}
	return err
}

// summarize appends the summary to a file, as jobs of continuous integration want it.
func summarize(path string, r *result.Report) error {
	if path == "" {
		return nil
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("GITHUB_STEP_SUMMARY: %w", err)
	}
	_, err = out.WriteString(r.Summary())
	return errors.Join(err, out.Close())
}

// readable is the report for people.
func readable(r *result.Report) string {
	var b strings.Builder
	for _, list := range []struct {
		word string
		all  []result.Difference
	}{{"regression", r.Regressions}, {"not judged", r.Unjudged}, {"flaky", r.Flaky}, {"improvement", r.Improvements}, {"changed", r.Changed}} {
		for i, d := range list.all {
			if i == most {
				fmt.Fprintf(&b, "and %d more: %s\n", len(list.all)-most, list.word)
				break
			}
			fmt.Fprintf(&b, "%s: %s\n  why:       %s\n", list.word, terminal.Printable(d.Place()), terminal.Printable(d.Why))
			if list.word != "changed" && d.Observed+d.Baseline+d.Candidate != "" {
				fmt.Fprintf(&b, "  observed:  %s\n  baseline:  %s\n  candidate: %s\n", terminal.Printable(d.Observed), terminal.Printable(d.Baseline), terminal.Printable(d.Candidate))
			}
		}
	}
	fmt.Fprintf(&b, "%s, %.1f s\n", r.Headline(), r.Seconds)
	return b.String()
}

// most is how many sessions of a verdict are listed at most.
const most = 20

// unjudged says why there is no judgement.
func unjudged(r *result.Report) error {
	if r.Sessions == 0 {
		return errors.New("not judged: the cohort has no session")
	}
	why := ""
	if len(r.Unjudged) > 0 {
		why = ": " + r.Unjudged[0].Why
	}
	return fmt.Errorf("%d of %s could not be judged%s", r.Sessions-r.Judged, terminal.Count(r.Sessions, "session"), why)
}
