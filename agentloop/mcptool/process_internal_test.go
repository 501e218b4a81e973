package mcptool

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A nil environment would be all of ours.
func TestAnEmptyEnvironmentIsEmpty(t *testing.T) {
	for _, name := range inherited {
		t.Setenv(name, "") // restores it
		require.NoError(t, os.Unsetenv(name))
	}
	require.Equal(t, []string{}, environment(nil))
}
