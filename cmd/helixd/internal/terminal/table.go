package terminal

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Row writes cells; an empty one as "-".
func Row(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		if texts[i] = Printable(fmt.Sprint(cell)); texts[i] == "" {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// Clock is a time, UTC.
func Clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05Z") }

// Count is a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
