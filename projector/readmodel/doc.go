// Package readmodel has the questions about all sessions together: lists of
// sessions and runs, their usage and cost, a search in their messages,
// and the records that could not be used.
//
// [Models] is the port; package projector/sqlite answers it from a file that
// is derived from the log, can be lost at any time, and is then made again.
// A row has the values of the fold of the session's tree: only [Derive] makes
// the rows of a tree.
//
// Every answer says how [Fresh] it is. A reader waits a while for the rows to
// reach the log's end as it was when the question came; if they don't, the
// answer says how far behind they are.
package readmodel
