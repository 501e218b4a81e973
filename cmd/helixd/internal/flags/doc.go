// Package flags has the flags that several commands share, and what a command uses of
// its process: its streams, its log and its exit code.
package flags
