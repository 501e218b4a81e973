// Package maintenance packs what sessions get into segments, from which they are read faster, purges and
// trims what segments hold, erases sessions, and drops segments whose records a power loss has taken from the log.
package maintenance
