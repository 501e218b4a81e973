// Package durable serves durable streams, and sessions as such streams, in the Durable Streams
// protocol (github.com/durable-streams/durable-streams, PROTOCOL.md). It turns headers into
// requests of package agentloop/durable and their outcomes into headers; what a stream is, and
// how requests are ordered, is decided there.
package durable
