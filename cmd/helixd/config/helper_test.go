package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// env is an environment.
type env map[string]string

func (e env) lookup(name string) (string, bool) {
	value, ok := e[name]
	return value, ok
}

// loadText loads a helix.yaml of the text, in its own folder, where
// errors name it just so.
func loadText(t *testing.T, text string, e env) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, "helix.yaml", text)
	return Load("helix.yaml", e.lookup)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
