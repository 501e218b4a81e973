package main

import (
	"archive/tar"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

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

// TestImage packs an image without Docker: its configuration has what the Dockerfile defines, also the health
// check.
func TestImage(t *testing.T) {
	for _, needed := range []string{"/etc/ssl/certs/ca-certificates.crt", "/usr/bin/bash"} {
		if _, err := os.Stat(needed); err != nil || runtime.GOOS != "linux" {
			t.Skipf("packaging/oci needs Linux and %s", needed)
		}
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	out, err := exec.CommandContext(t.Context(), "packaging/oci", "packaging/helix.yaml", "amd64", "v1.0.0", file).CombinedOutput() // any file as the program
	require.NoError(t, err, "%s", out)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	contents := map[string][]byte{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		contents[header.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
	var manifest []struct{ Config string }
	require.NoError(t, json.Unmarshal(contents["manifest.json"], &manifest))
	var image struct {
		Config struct {
			User, StopSignal string
			Cmd              []string
			Healthcheck      struct {
				Test                           []string
				Interval, Timeout, StartPeriod time.Duration
			}
		}
	}
	require.NoError(t, json.Unmarshal(contents[manifest[0].Config], &image))
	require.Equal(t, "65532:65532", image.Config.User)
	require.Equal(t, "SIGTERM", image.Config.StopSignal)
	require.Equal(t, []string{"serve", "--config", "/etc/helixd/helix.yaml"}, image.Config.Cmd)
	health := image.Config.Healthcheck
	require.Equal(t, []string{"CMD", "/usr/bin/helixd", "healthy"}, health.Test)
	dockerfile, err := os.ReadFile("packaging/Dockerfile")
	require.NoError(t, err)
	options := regexp.MustCompile(`HEALTHCHECK --interval=(\S+) --timeout=(\S+) --start-period=(\S+) `).FindStringSubmatch(string(dockerfile))
	require.Len(t, options, 4)
	for i, got := range []time.Duration{health.Interval, health.Timeout, health.StartPeriod} {
		want, err := time.ParseDuration(options[i+1])
		require.NoError(t, err)
		require.Equal(t, want, got, options[i+1])
	}
}
