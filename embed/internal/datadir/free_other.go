//go:build !darwin && !linux

package datadir

// FreeBytes is not implemented for this operating system.
func FreeBytes(string) (n uint64, ok bool) { return 0, false }
