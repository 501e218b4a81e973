// Package flags has the flags that several commands share, and gives each command its streams, its
// log and its exit code.
package flags
