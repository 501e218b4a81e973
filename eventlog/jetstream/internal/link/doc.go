// Package link is a log's connection to its servers. It sends requests, and retries those
// that a cluster can't answer yet. If the server answers before a sync, it waits for the
// disk, so that an answer means what the log promises. It maps JetStream's errors to the
// errors of eventlog: after each one the caller knows whether an append was refused, or
// its outcome is unknown. It knows nothing of sessions.
package link
