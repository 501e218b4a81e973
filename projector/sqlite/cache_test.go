package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/projector"
)

// TestAnIdleFoldIsEvicted unless its rows are not in the file yet.
func TestAnIdleFoldIsEvicted(t *testing.T) {
	c := newFoldCache(10, 1<<20)
	for _, root := range []string{"idle", "dirty", "used"} {
		c.put(root, new(projector.Tree))
	}
	c.folds["dirty"].dirty = true
	later := time.Now().Add(foldIdle)
	c.folds["used"].used = later
	c.shrink(later)
	require.Nil(t, c.folds["idle"])
	require.NotNil(t, c.folds["dirty"])
	require.NotNil(t, c.folds["used"])
	require.Equal(t, 2, c.order.Len())
}
