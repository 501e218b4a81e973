// Package evidence compares the answers that clients of helixd got with the records in its
// log, for the programs beside it that put a load on nodes. It knows of no
// process and no connection.
package evidence
