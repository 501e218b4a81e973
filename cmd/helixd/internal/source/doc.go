// Package source reads and changes sessions for commands, through a daemon or, without one,
// through an HTTP server in this process that reads from NATS.
package source
