package checker

import (
	"bytes"
	"os"
)

// bad are words that no node may ever say, whatever is broken: they tell of a
// panic, or of files that are damaged.
var bad = []string{"panic: ", "fatal error: ", "handler panicked", "DATA RACE", "corrupt input"}

// BadLine returns what a node's log, a file, has from a line on that no log may have; empty: it has none.
func BadLine(log string) string {
	raw, _ := os.ReadFile(log)
	for _, word := range bad {
		if i := bytes.Index(raw, []byte(word)); i >= 0 {
			from := bytes.LastIndexByte(raw[:i], '\n') + 1
			return string(raw[from:min(len(raw), i+2000)])
		}
	}
	return ""
}
