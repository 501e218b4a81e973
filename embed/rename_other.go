//go:build !linux

package embed

// ordersRenames reports whether a file that replaces another one by a rename is whole
// after a power loss, also without a sync before: not known here.
func ordersRenames(string) bool { return false }
