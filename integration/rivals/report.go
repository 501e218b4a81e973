package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// figure is what one system reached, and how durable it was doing so.
type figure struct {
	System     string  `json:"system"`
	Durability string  `json:"durability"`
	Value      float64 `json:"value"`
}

// row is one comparison.
type row struct {
	Scenario string `json:"scenario"`
	What     string `json:"what"`
	Unit     string `json:"unit"`
	Ours     figure `json:"ours"`
	Rival    figure `json:"rival"`
	// Ratio is how many times better Ours is: for a latency or a size
	// Rival/Ours, for a rate Ours/Rival.
	Ratio float64 `json:"ratio"`
	Aim   string  `json:"aim,omitempty"`
	// Reached says whether the aim is, where there is one.
	Reached *bool `json:"reached,omitempty"`
}

// report is the result of a run.
type report struct {
	Facts   []fact  `json:"facts"`
	Short   bool    `json:"short"`
	Seconds float64 `json:"seconds"`
	Rows    []row   `json:"rows"`
	// Failures are scenarios that broke off; the rows that they had are kept.
	Failures []string `json:"failures,omitempty"`

	scenario string // that is running
}

// aim is what a row should reach; the zero value is none.
type aim struct {
	ratio float64 // at least
	limit float64 // Ours at most, or at least where more is better
}

// lower adds a row where less is better.
func (r *report) lower(what, unit string, ours, rival figure, a aim) {
	row := row{What: what, Unit: unit, Ours: ours, Rival: rival}
	if ours.Value > 0 {
		row.Ratio = rival.Value / ours.Value
	}
	r.add(row, a, "at most", ours.Value <= a.limit)
}

// higher adds a row where more is better.
func (r *report) higher(what, unit string, ours, rival figure, a aim) {
	row := row{What: what, Unit: unit, Ours: ours, Rival: rival}
	if rival.Value > 0 {
		row.Ratio = ours.Value / rival.Value
	}
	r.add(row, a, "at least", ours.Value >= a.limit)
}

func (r *report) add(row row, a aim, words string, within bool) {
	row.Scenario = r.scenario
	switch {
	case a.limit > 0:
		row.Aim, row.Reached = fmt.Sprintf("%s %s %s", words, number(a.limit), row.Unit), &within
	case a.ratio > 0:
		reached := row.Ratio >= a.ratio
		row.Aim, row.Reached = "ratio at least "+number(a.ratio), &reached
	}
	r.Rows = append(r.Rows, row)
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *report) writeMarkdown(w io.Writer) error {
	kind := "full"
	if r.Short {
		kind = "short"
	}
	fmt.Fprintf(w, "One %s run of %.0f s.\n\n", kind, r.Seconds)
	for _, f := range r.Facts {
		fmt.Fprintf(w, "- %s: %s\n", f.Name, f.Value)
	}
	fmt.Fprint(w, "\nRatio: how many times better helixd is; under 1 it is worse.\n\n"+
		"| scenario | what | unit | helixd | rival | ratio | aim |\n"+
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, f := range r.Failures {
		fmt.Fprintf(w, "| FAILED | %s | | | | | |\n", strings.NewReplacer("|", "\\|", "\n", "; ").Replace(f))
	}
	for _, row := range r.Rows {
		goal := row.Aim
		if row.Reached != nil && *row.Reached {
			goal += ": reached"
		} else if row.Reached != nil {
			goal += ": **missed**"
		}
		_, err := fmt.Fprintf(w, "| %s | %s | %s | %s | %s %s | **%s** | %s |\n",
			row.Scenario, row.What, row.Unit, row.Ours.cell(), row.Rival.System, row.Rival.cell(), number(row.Ratio), goal)
		if err != nil {
			return err
		}
	}
	return nil
}

func (f figure) cell() string {
	if f.Durability == "" {
		return number(f.Value)
	}
	return fmt.Sprintf("%s (%s)", number(f.Value), f.Durability)
}

// number prints three digits that count; more would be noise.
func number(v float64) string {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return fmt.Sprint(v)
	}
	places := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	if places > 0 {
		return strconv.FormatFloat(v, 'f', places, 64)
	}
	return thousands(int(math.Round(v)))
}

// thousands prints n, which is not negative, with its thousands set apart.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
