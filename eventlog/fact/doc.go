// Package fact has the records of a session that are not chunks: what helixd must
// remember in addition to the public stream. [Fact] is the interface of all of them, and
// each file has the facts of one subject.
//
// Package eventlog encodes, checks and stores facts (eventlog.NewFact, eventlog.DecodeFact),
// and has the one that it interprets itself, eventlog.Truncated. Package projector folds
// them to state.
package fact
