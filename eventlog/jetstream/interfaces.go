package jetstream

import (
	"context"
	"iter"

	"github.com/helixd/helixd/eventlog"
)

var (
	_ eventlog.Archive  = (*Log)(nil)
	_ eventlog.Copier   = (*Log)(nil)
	_ eventlog.Feed     = (*Log)(nil)
	_ eventlog.Attacher = (*Log)(nil)
)

// Follow implements eventlog.Log.
func (l *Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return l.live.Follow(ctx, session, from)
}

// Attach implements eventlog.Attacher.
func (l *Log) Attach(ctx context.Context, session string) (eventlog.Attachment, error) {
	return l.live.Attach(ctx, session)
}

// Identity implements eventlog.Feed: it is told by when the streams were made.
func (l *Log) Identity(ctx context.Context) (string, error) { return l.feeds.Identity(ctx) }

// Spans implements eventlog.Feed.
func (l *Log) Spans(ctx context.Context) ([]eventlog.Span, error) { return l.feeds.Spans(ctx) }

// Feed implements eventlog.Feed.
func (l *Log) Feed(ctx context.Context, partition int, from uint64) iter.Seq2[eventlog.Fed, error] {
	return l.feeds.Feed(ctx, partition, from)
}

// Verify walks everything that the streams have of a session and tells found
// what is wrong: in its records ([eventlog.Check]), in what links them, in its
// sealed segments, between those and the log, in its large payloads. It returns
// how many records there are. It changes nothing, and it does not stop at the
// first problem; its error is that it can't go on.
//
// It may run beside writers: what comes after its start it does not look at.
// It reads what readers read, through the server, which checks what it takes
// from its files but answers from memory what it has there: see
// embed.Folder.Check. On several replicas it sees the one that answers.
//
// What it can't find is the loss of the very last records of a session while
// nothing names them any more: no segment, no saved fold, no batch that they
// belonged to, no count of the server's, which remembers a loss that it has met
// itself until it is started again. The same is true of a session that is
// lost as a whole. [eventlog.FoundSequencesMissing] is what then remains.
func (l *Log) Verify(ctx context.Context, session string, found func(eventlog.Finding)) (records int, err error) {
	return l.verifier().Verify(ctx, session, found)
}

// VerifySubjects returns the sessions that the streams have anything of, sorted
// by bytes, and tells found of messages that are no session's.
func (l *Log) VerifySubjects(ctx context.Context, found func(eventlog.Finding)) ([]string, error) {
	return l.verifier().VerifySubjects(ctx, found)
}

// VerifyStreams tells found what the server itself says of the streams. It
// comes after the sessions have been read: the server notices some damage only
// then.
func (l *Log) VerifyStreams(ctx context.Context, found func(eventlog.Finding)) error {
	return l.verifier().VerifyStreams(ctx, found)
}

func (l *Log) verifier() *verifier { return &verifier{l.live.store} }
