// Package version says which build of helixd this is, and which format of stored data it
// reads and writes.
package version
