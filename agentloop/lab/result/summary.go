package result

import (
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop/lab/paired"
)

// rows is the most differences that a summary lists of a verdict.
const rows = 20

// Summary writes the report as Markdown, for the summary of a job.
func (r *Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Regression lab: %s\n\n", r.Headline())
	fmt.Fprintf(&b, "Cohort `%s`, hash `%s`, %.1f s", escaped(r.Cohort), short(r.Hash), r.Seconds)
	if r.Cost > 0 || r.Tokens > 0 {
		fmt.Fprintf(&b, ", %d tokens, cost %.4f", r.Tokens, r.Cost)
	}
	b.WriteString(".\n\n")
	for _, list := range []struct {
		title string
		all   []Difference
	}{{"Regressions", r.Regressions}, {"Not judged", r.Unjudged}, {"Flaky", r.Flaky}, {"Improvements", r.Improvements}} {
		if len(list.all) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n| session | at | agent | kind | why | baseline | candidate |\n| --- | --- | --- | --- | --- | --- | --- |\n", list.title)
		for _, d := range list.all[:min(rows, len(list.all))] {
			fmt.Fprintf(&b, "| `%s` | %d | %s | %s | %s | %s | %s |\n", escaped(d.Session), d.Sequence, escaped(d.Agent), d.Kind, escaped(d.Why), escaped(d.Baseline), escaped(d.Candidate))
		}
		if more := len(list.all) - rows; more > 0 {
			fmt.Fprintf(&b, "\nand %d more\n", more)
		}
		b.WriteByte('\n')
	}
	b.WriteString("### Baseline and candidate\n\n| | baseline | candidate | change | 95 % interval | sessions needed |\n| --- | --- | --- | --- | --- | --- |\n")
	p := r.Compared.Passed
	fmt.Fprintf(&b, "| passed | %.1f %% | %.1f %% | %+.1f | %+.1f to %+.1f | %s |\n", 100*p.Baseline, 100*p.Candidate, 100*p.Change, 100*p.Interval.Low, 100*p.Interval.High, neededWords(p.Needed))
	for _, m := range []struct {
		name string
		paired.Means
	}{{"cost", r.Compared.Cost}, {"tokens", r.Compared.Tokens}, {"steps", r.Compared.Steps}, {"latency, ms", r.Compared.LatencyMs}} {
		fmt.Fprintf(&b, "| %s | %.4g | %.4g | %+.4g | %+.4g to %+.4g | %s |\n", m.name, m.Baseline, m.Candidate, m.Change, m.Interval.Low, m.Interval.High, neededWords(m.Needed))
	}
	c := r.Compared
	fmt.Fprintf(&b, "\nCalls: %d with other arguments, %d added, %d missing. Approvals: %d added, %d avoided.\n", c.Arguments, c.CallsAdded, c.CallsMissing, c.ApprovalsAdded, c.ApprovalsAvoided)
	if j := r.Judge; j != nil {
		fmt.Fprintf(&b, "\nJudge: `%s`, ", escaped(j.Model))
		if a := j.Agreement; a.Rated > 0 {
			fmt.Fprintf(&b, "agrees with people on %.0f %% of %d labels, kappa %.2f (%.2f to %.2f).\n", 100*a.Share, a.Rated, a.Kappa, a.Interval.Low, a.Interval.High)
		} else {
			b.WriteString("not compared with people: there are no labels.\n")
		}
	}
	return b.String()
}

// Headline is the result in one line.
func (r *Report) Headline() string {
	words := []string{count(len(r.Regressions), "regression"), count(len(r.Improvements), "improvement"), fmt.Sprintf("%d flaky", len(r.Flaky))}
	if n := r.Sessions - r.Judged; n > 0 {
		words = append(words, fmt.Sprintf("%d not judged", n))
	}
	return strings.Join(words, ", ") + " in " + count(r.Sessions, "session")
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

func neededWords(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

func short(hash string) string { return hash[:min(12, len(hash))] }

// escaped makes text safe for a cell of a Markdown table.
func escaped(text string) string {
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "\n", " ", "\r", " ", "<", "&lt;", "`", "'").Replace(text)
}
