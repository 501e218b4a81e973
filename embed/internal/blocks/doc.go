// Package blocks reads, checks and overwrites the files in which nats-server stores a stream's
// messages. The format is private to nats-server: no other package knows it.
package blocks
