//go:build !linux

package embed

// ordersRenames reports whether a file that replaces another one by a rename is on its way
// to the disk by then, without a sync: not known here.
func ordersRenames(string) bool { return false }
