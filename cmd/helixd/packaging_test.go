package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// What systemd-analyze security may find of the unit, times 10: what it needs
// are the network and its folder; with commands, what confines them.
const maxExposure, maxExposureCommands = "15", "22"

// TestUnit: systemd understands the unit and its drop-in, and finds little that
// they leave open.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil && os.Getenv("HELIX_SYSTEMD") == "" {
		t.Skip("there is no systemd-analyze")
	}
	require.NoError(t, err)
	raw, err := os.ReadFile("packaging/helixd.service")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "helixd.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(raw), "/usr/bin/helixd", self)), 0o600))
	understood := func(most string) (found string) {
		for _, args := range [][]string{{"verify", unit}, {"security", "--offline=true", "--no-pager", "--threshold=" + most, unit}} {
			cmd := exec.CommandContext(t.Context(), analyze, args...)
			cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8") // else its marks are others
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.NotContains(t, string(out), unit, "a complaint about a line")
			found = string(out)
		}
		return found
	}
	const users = "RestrictNamespaces=~user "
	require.Contains(t, understood(maxExposure), "\u2713 "+users, "no namespaces")
	raw, err = os.ReadFile("packaging/helixd-commands.conf")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(unit+".d", 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(unit+".d", "commands.conf"), raw, 0o600))
	require.Contains(t, understood(maxExposureCommands), "\u2717 "+users, "the drop-in counts")
}

// TestPackagedConfig: what is installed to begin with is a configuration that
// needs a token, and the image's settings are keys of it.
func TestPackagedConfig(t *testing.T) {
	_, err := config.Load("packaging/helix.yaml", func(string) (string, bool) { return "", false })
	require.ErrorContains(t, err, "HELIX_TOKEN")
	image, err := os.ReadFile("packaging/Dockerfile")
	require.NoError(t, err)
	set := map[string]string{"HELIX_TOKEN": "t"}
	for _, m := range regexp.MustCompile(`(?m)^ENV (\w+)=(.*)$`).FindAllStringSubmatch(string(image), -1) {
		set[m[1]] = m[2]
	}
	c, err := config.Load("packaging/helix.yaml", func(name string) (string, bool) { v, ok := set[name]; return v, ok })
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.True(t, c.Auth.Configured())
	require.Equal(t, "0.0.0.0:8080", c.Listen)
	require.Equal(t, "/data", c.DataDir)
}
