package integration_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// readmeConfig is for the plain page: its origin, and what answers it.
const readmeConfig = `
chat: {defaultAgent: weather}
agents:
  weather:
    model:
      provider: scripted
      scriptDelay: 30ms
      script:
        - text: Let me look that up.
          toolCalls: [{name: get_weather, arguments: {city: San Francisco}}]
        - text: San Francisco has fog and 14 degrees, as ever. It will stay like that until somebody looks again, which may be tomorrow.
    tools:
      get_weather: {http: {url: "http://localhost:%[1]s/tool"}}
  chapters:
    maxSteps: 30
    model:
      provider: scripted
      scriptDelay: 20ms
      script:
%[2]s        - text: That was all.
    tools:
      get_weather: {http: {url: "http://localhost:%[1]s/tool"}}
`

// chapter is a step of the agent chapters, for each kill one.
const chapter = `        - text: Chapter %[1]d, of which a reader should see each word once. Here it is cut off, and here it must continue. End of %[1]d.
          toolCalls: [{name: get_weather, arguments: {city: "%[1]d"}}]
`

// TestReadme runs the documentation's web page and its useChat component in Chromium.
// It needs Chromium, node and what `make readme` installs.
func TestReadme(t *testing.T) {
	testkit.With(t, "HELIX_README", "readme")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	browser := chromium(t)

	dir := t.TempDir()
	_, port, err := net.SplitHostPort(freeAddress(t))
	require.NoError(t, err)
	var chapters strings.Builder
	for i := range 20 {
		fmt.Fprintf(&chapters, chapter, i+1)
	}
	config := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, readmeConfig, port, chapters.String()), 0o600))
	t.Setenv("HELIX_CORS_ORIGINS", "http://localhost:"+port) // as the page says
	plain := newDaemon(t, "dev", "--config", config, "--data-dir", filepath.Join(dir, "plain"), "--nats-listen", freeAddress(t))
	demo := newDaemon(t, "dev", "--data-dir", filepath.Join(dir, "demo"), "--nats-listen", freeAddress(t))
	plain.start()
	demo.start()

	node := exec.CommandContext(ctx, "node", "main.mjs", port, plain.url, demo.url)
	node.Dir = "readme"
	node.Env = append(os.Environ(), "CHROMIUM="+browser)
	obey(t, node, func(command, _ string) any {
		switch command {
		case "kill":
			plain.kill()
		case "restart":
			plain.start()
		}
		return struct{}{}
	})
}
