// Package source is where commands read and change sessions: a daemon or, without one,
// an HTTP server in this process that reads from NATS.
package source
