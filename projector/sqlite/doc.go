// Package sqlite keeps the read models of a node in one SQLite file.
//
// The file is derived from the log and nothing else: it can be removed at any
// time, also while the node runs, and is made again. It holds its position in
// each partition of the log, in the same transaction as the rows that come of
// the records up to there; which log it is of; and by which version it was
// made. A file of another log or version, one that is ahead of its log, and one
// that is damaged is removed, since it could hold what was erased.
//
//	log ──feed, one a partition──> folds (a bounded cache) ──Derive──> rows, positions: one transaction
//
// There is one goroutine that writes. Rows are what [readmodel.Derive] says of
// the fold of a tree; a fold that is not in the cache comes from the saved
// folds and the log. A record that the fold parks is listed; a session that
// can't be folded at all, since the log has lost a payload, is listed as stuck,
// and the others go on.
//
// The log of a memory scope is no session: its memories have tables of their
// own, which are written as its records come. They are found by words with
// FTS5, ranked by BM25, and by meaning with the cosine of all vectors of the
// scope. Those that were asked for last are kept in memory, up to a bound.
//
// An erased session's rows are overwritten, in the file and in the search
// index, and the write-ahead log is cut off behind them, on every node that
// hears of the erasure in the feed, or later by comparing the sessions that
// there are. Those of an erased memory scope are not found any more either, and
// overwritten in parts, between which other records are written.
//
// Not promised: that a row is there the moment its record is acknowledged; see
// [readmodel.Fresh].
package sqlite
