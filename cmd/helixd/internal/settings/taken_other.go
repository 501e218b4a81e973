//go:build !linux

package settings

// listenerOn is not known here.
func listenerOn(string) (name, pid string) { return "", "" }
