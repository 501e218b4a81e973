// Package streams creates and checks the streams of a log, and knows the partition of
// each session. It refuses streams on which the log can't keep its promises. If the log
// grows, it does so while processes use it: a session that exists stays in its partition,
// and no two processes create a session in different ones. It also removes and overwrites
// messages.
package streams
