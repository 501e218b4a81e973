package doctor

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/eventlog/version"
)

// diagnosis prints checks: as text at once, as JSON at the end.
type diagnosis struct {
	w                  io.Writer
	json               bool
	checks             []doctor.Check
	warnings, problems int
	err                error // of w
}

func (d *diagnosis) add(c doctor.Check) {
	d.checks = append(d.checks, c)
	switch c.Status {
	case doctor.Warning:
		d.warnings++
	case doctor.Problem:
		d.problems++
	}
	if d.json {
		return
	}
	d.print("%-8s %-12s %s\n", c.Status, c.ID, c.Found)
	if c.Advice != "" {
		d.print("%-8s %-12s -> %s\n", "", "", c.Advice)
	}
}

// close prints the rest; failed says why there is no more of it.
func (d *diagnosis) close(failed error) error {
	if !d.json {
		end := ""
		if failed != nil {
			end = ", and it could not look further"
		}
		d.print("warnings: %d, problems: %d%s\n", d.warnings, d.problems, end)
		return d.err
	}
	all := struct {
		Version  string         `json:"version"`
		Checks   []doctor.Check `json:"checks"`
		Warnings int            `json:"warnings"`
		Problems int            `json:"problems"`
		Error    string         `json:"error,omitempty"`
	}{version.Current(), append([]doctor.Check{}, d.checks...), d.warnings, d.problems, ""}
	if failed != nil {
		all.Error = failed.Error()
	}
	e := json.NewEncoder(terminal.JSON(d.w))
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(all)
}

func (d *diagnosis) print(format string, args ...any) {
	if _, err := io.WriteString(d.w, terminal.Readable(fmt.Sprintf(format, args...))); err != nil && d.err == nil {
		d.err = err
	}
}
