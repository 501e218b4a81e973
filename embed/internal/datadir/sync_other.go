//go:build windows

package datadir

// Sync does nothing: Windows syncs no folders.
func Sync(string) error { return nil }
