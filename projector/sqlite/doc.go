// Package sqlite keeps the read models of a node in one SQLite file.
//
// The file is derived from the log and nothing else: it can be removed at any time, also
// while the node runs, and is then built again. It stores the version that made it, which
// log it was made from, and a position in each partition of that log. A position is
// written in the same transaction as the rows of the records up to it. A file is removed
// if it is of another log or version, is ahead of its log, or is damaged, since it could
// hold records that were erased.
//
//	log ──one feed per partition──> folds (a bounded cache) ──Derive──> rows and positions: one transaction
//
// One goroutine writes. Rows are computed by [readmodel.Derive] from the fold of a tree;
// a fold that is not in the cache is built from the saved folds and the log. A record
// that the fold parks is listed. A session that can't be folded at all, because the log
// has lost a payload, is listed as stuck; other sessions are not affected.
//
// The log of a memory scope is not a session: its memories have their own tables, which
// are written as its records arrive. Memories are found by words with FTS5, ranked by
// BM25, and by meaning with the cosine of all vectors of the scope. The vectors of the
// scopes that were queried last are kept in memory, up to a bound.
//
// If a session is erased, its rows are overwritten in the file and in the search index,
// and the write-ahead log is truncated after that. Every node does so when it receives
// the erasure from the feed, or later when it compares its rows with the sessions that
// exist. The memories of an erased scope are not found any more from that moment; they
// are overwritten in parts, between which other records are written.
//
// Not promised: that a row exists the moment its record is acknowledged; see
// [readmodel.Fresh].
package sqlite
