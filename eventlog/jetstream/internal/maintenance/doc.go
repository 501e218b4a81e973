// Package maintenance packs records into segments, from which they are read faster;
// purges from the log what segments have; trims segments that retention allows it to
// remove; erases sessions; and removes segments whose records a power loss has taken from
// the log. Sealing and purging change nothing for readers: a record is purged only after
// it was compared with its copy in a segment. Several nodes may do any of this at once,
// and one may die at any point: another one continues.
package maintenance
