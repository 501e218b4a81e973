//go:build !unix

package terminal

// Width is not known here.
func Width(any) int { return 0 }
