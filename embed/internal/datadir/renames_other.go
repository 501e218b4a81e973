//go:build !linux

package datadir

// OrdersRenames returns false: nothing is known of the file systems of this operating system.
func OrdersRenames(string) bool { return false }
