// Package evidence holds what clients of helixd were told against what its log
// has: for the programs beside it that put a load on nodes. It knows of no
// process and no connection.
package evidence
