//go:build !darwin && !linux

package main

// freeBytes is not known here.
func freeBytes(string) (n uint64, ok bool) { return 0, false }
