// Package datadir asks the operating system what package embed needs for a data folder: a lock,
// the free space, an atomic replacement of a file, and which order renames are written in. It also has
// the pause between two looks at the folder.
package datadir

import "errors"

// ErrInUse: another server has the lock of the folder.
var ErrInUse = errors.New("is in use by another server")
