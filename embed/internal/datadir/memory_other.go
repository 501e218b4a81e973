//go:build !linux

package datadir

// FreeMemory knows no file system in memory on this operating system.
func FreeMemory(string) (n uint64, ok bool) { return 0, false }
