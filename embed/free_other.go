//go:build !darwin && !linux

package embed

// FreeBytes is how many bytes a user may still store in a folder, where the
// system tells: not here.
func FreeBytes(string) (n uint64, ok bool) { return 0, false }
