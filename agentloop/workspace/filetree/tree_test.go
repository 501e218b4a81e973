package filetree_test

import (
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/filetree"
)

// A folder is not moved to where a file in it would have a name that nobody may use.
func TestRenameKeepsNamesUsable(t *testing.T) {
	long := strings.Repeat("x", workspace.MaxElement)
	deep := path.Join("a", long, long, long, "file") // fits
	tree := filetree.Tree{"a": {Mode: 0o755}, "a/b": {Size: 1}, deep: {Size: 2}}
	before := maps.Clone(tree)
	require.ErrorIs(t, tree.Rename("a", path.Join(long, "a")), workspace.ErrName)
	require.Equal(t, before, tree)
	require.NoError(t, tree.Rename("a", "b"))
	require.Equal(t, int64(2), tree[path.Join("b", long, long, long, "file")].Size)
}
