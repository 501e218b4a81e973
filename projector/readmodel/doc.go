// Package readmodel is what can be asked about all sessions together: lists of
// sessions and runs, what they have used and cost, a search in what was said,
// and the records that could not be used.
//
// [Models] is the port; package projector/sqlite answers it from a file that
// is derived from the log, can be lost at any time, and is then made again.
// What a row says is what the fold of the session's tree says: [Derive] makes
// the rows of a tree, and nothing else does.
//
// Every answer tells how [Fresh] it is. A reader waits a while for the rows to
// reach the log's end as it was when the question came; if they don't, the
// answer says how far behind they are.
package readmodel
