package docs

import (
	"fmt"
	"strings"
)

// Table is a Markdown table.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := make([]string, len(head))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.ReplaceAll(strings.ReplaceAll(cell, "\n", " "), "|", `\|`)
		}
		line(cells)
	}
	return b.String()
}

// Fill puts text between <!-- name --> and <!-- end of name -->, which must
// both stand on the page.
func Fill(page, name, text string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		return "", fmt.Errorf("there is no %q", begin)
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("there is no %q", end)
	}
	return before + begin + "\n" + text + "\n" + end + after, nil
}
