// Package link is a log's connection to its servers: it sends requests, repeats those that a cluster can't
// answer yet, waits for the disk where the server does not, and says what an error means for an append.
package link
