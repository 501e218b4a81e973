package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/docs"
)

// The README is short enough to be read, and its program compiles.
func TestDocsReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	assert.Less(t, len(text), 10_000, "bytes of README.md; the rest belongs in docs/")

	page, err := docs.Parse("README.md", string(text))
	require.NoError(t, err)
	programs := 0
	for _, block := range page.Blocks {
		if block.Language != "go" {
			continue
		}
		programs++
		program := filepath.Join(t.TempDir(), "main.go")
		text := strings.Replace(block.Text, "package main\n", "package readme\n", 1) // it need not be linked
		require.NoError(t, os.WriteFile(program, []byte(text), 0o644))
		// The file is outside the module, but its imports are resolved in this one.
		out, err := exec.Command("go", "build", program).CombinedOutput()
		assert.NoError(t, err, "README.md:%d does not compile\n%s", block.Line, out)
	}
	assert.Positive(t, programs)
}
