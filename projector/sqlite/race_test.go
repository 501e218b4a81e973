//go:build race

package sqlite

// raced: SQLite in Go is slow under the race detector.
const raced = true
