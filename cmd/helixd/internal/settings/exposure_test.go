package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWeakTokens(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]bool{
		"": true, "a": true, "secret": true, "correct-horse12": true, strings.Repeat("a", 64): true, strings.Repeat("ab", 16): true,
		"passwordpassword": true, "f3a91c0b7de24586": false, "5e1c07c2b1a94f0e8b7d1f7f2c3a4d6e": false, "Zk3-9xQvB_r2LmT7": false,
	} {
		require.Equal(t, want, weak(token), token)
	}
}
