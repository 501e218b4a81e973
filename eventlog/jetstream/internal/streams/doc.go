// Package streams makes and checks the streams of a log, and knows which partition has a session.
package streams
