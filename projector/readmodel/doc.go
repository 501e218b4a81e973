// Package readmodel defines the queries about all sessions: lists of sessions and runs,
// usage and cost, a search in their messages, memories, and the records that could not be
// used.
//
// [Models] is the interface. Package projector/sqlite implements it with a file that is
// derived from the log; the file can be lost at any time and is then built again. A row
// has the values of the fold of the session's tree: only [Derive] computes the rows of a
// tree.
//
// Every answer has a [Fresh], which says how current it is. A query waits a while for the
// rows to reach the log's end as it was when the query arrived. If they don't, the answer
// says how many records are missing.
package readmodel
