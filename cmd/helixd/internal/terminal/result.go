package terminal

import (
	"encoding/json"
	"fmt"
	"io"
)

// Result prints what a command has done: as JSON, or in words.
func Result(w io.Writer, asJSON bool, result any, words string) error {
	if asJSON {
		enc := json.NewEncoder(JSON(w))
		enc.SetEscapeHTML(false)
		return enc.Encode(result)
	}
	_, err := fmt.Fprintln(w, words)
	return err
}

// Bytes is an amount of bytes, such as 1.5 MiB.
func Bytes(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return Count(int(n), "byte")
	}
	size, prefixes := float64(n)/unit, "KMGTPE"
	for size >= unit {
		size, prefixes = size/unit, prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", size, prefixes[0])
}
