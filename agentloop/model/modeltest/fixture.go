package modeltest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fixture reads the recorded stream name (without extension) from
// ../shared/fixtures/providers beside the module's root. It skips the test if
// that folder is missing, for it is not part of the repository.
func Fixture(t testing.TB, name string) Stream {
	t.Helper()
	dir := filepath.Join(moduleRoot(t), "..", "shared", "fixtures", "providers")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("recorded provider streams are missing: no folder %s", dir)
	}
	if text, err := os.ReadFile(filepath.Join(dir, name+".sse")); err == nil {
		return Events(sseData(string(text))...)
	}
	text, err := os.ReadFile(filepath.Join(dir, name+".chunks.txt"))
	require.NoError(t, err)
	return Events(lines(string(text))...)
}

// moduleRoot is the next folder upwards that holds a go.mod.
func moduleRoot(t testing.TB) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		require.NotEqual(t, up, dir, "no go.mod above the working directory")
		dir = up
	}
}

func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// sseData takes the events' data out of raw SSE; types and the end marker
// come back with [Events].
func sseData(text string) []string {
	var out []string
	for _, line := range lines(text) {
		data, ok := strings.CutPrefix(line, "data:")
		if data = strings.TrimSpace(data); ok && data != "[DONE]" {
			out = append(out, data)
		}
	}
	return out
}
