// Package terminal writes what commands print: text that cannot steer the terminal,
// tables, colours, and streams and messages in words.
package terminal
