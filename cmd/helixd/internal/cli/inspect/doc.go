// Package inspect has the commands that look at sessions: they change nothing, and most
// read from a daemon or directly from NATS.
package inspect
