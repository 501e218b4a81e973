package integration_test

import (
	"os"
	"testing"
)

// TestAGUI runs AG-UI's own client against the daemon. It needs node and what `make agui`
// installs.
func TestAGUI(t *testing.T) {
	if os.Getenv("HELIX_AGUI") == "" {
		t.Skip("set HELIX_AGUI=1, as `make agui` does")
	}
	runNode(t, "agui")
}
