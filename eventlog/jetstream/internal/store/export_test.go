package store

import "testing"

// Queueing makes l believe that a batch of appends is in progress, so that appends queue
// up. begins is the partition's first sequence as far as l knows, queued waits until n
// appends wait, and work stores them.
func Queueing(t *testing.T, l *Store) (begins func() uint64, queued func(n int), work func()) {
	c, queued := queueing(t, l)
	return c.Begins.Load, queued, c.work
}
