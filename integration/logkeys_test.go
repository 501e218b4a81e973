package integration_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogKeysAreDeclared: what identifies a line has one name everywhere, that
// of eventlog's constants.
func TestLogKeysAreDeclared(t *testing.T) {
	t.Parallel()
	literal := regexp.MustCompile(`(?i)log(ger)?(\(\))?\.(debug|info|warn|error|log|with)(context)?\([^)]*"(session|sessionId|run|runId|request|requestId|call|tool)",`)
	for _, p := range listed(t) {
		for _, name := range p.GoFiles {
			source, err := os.ReadFile(filepath.Join(p.Dir, name))
			require.NoError(t, err)
			require.Empty(t, literal.FindString(string(source)), "%s/%s: use eventlog.LogSession and the like", p.folder(), name)
		}
	}
}
