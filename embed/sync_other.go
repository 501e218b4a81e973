//go:build windows

package embed

// syncFolder does nothing: the system syncs no folders.
func syncFolder(string) error { return nil }
