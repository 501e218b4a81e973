package docs

import (
	"regexp"
	"strings"
)

// changing is what differs from run to run.
var changing = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`), "ULID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\b\d{13}\b`), "MILLISECONDS"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`\b[0-9a-f]{40,64}\b`), "HASH"},
}

// ended is what bash says of a job that a signal ended.
var ended = regexp.MustCompile(`bash: line \d+: +\d+ (Killed|Terminated) .*\n?`)

func settle(text string) string {
	text = ended.ReplaceAllString(text, "")
	for _, c := range changing {
		text = c.pattern.ReplaceAllString(text, c.name)
	}
	return strings.TrimRight(text, " \n")
}

// Matches says whether output is what a page shows.
func Matches(shown, output string) bool {
	parts := strings.Split(settle(shown), "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	pattern := regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`)
	return pattern.MatchString(settle(output))
}
