package eventlog

import (
	"context"
	"iter"
)

// Attachment is a place in a session: its records up to Head are read, those after
// Head are followed, and none is missed in between.
type Attachment struct {
	Head uint64 // the session's head when the attachment was made
	// Follow yields the records with sequence > Head, as [Log].Follow. It is called at
	// most once.
	Follow func(ctx context.Context) iter.Seq2[Record, error]
	// Leave ends the attachment. A second call does nothing.
	Leave func()
}

// Attacher is a [Log] that attaches with one look at the session's head.
type Attacher interface {
	// Attach attaches to a session. Errors: as [Log].Head.
	Attach(ctx context.Context, session string) (Attachment, error)
}

// Attach attaches to a session, so that what is live follows a head that was read
// once. The caller leaves. Errors: as [Log].Head.
func Attach(ctx context.Context, log Log, session string) (Attachment, error) {
	if a, ok := log.(Attacher); ok {
		return a.Attach(ctx, session)
	}
	head, err := log.Head(ctx, session)
	return Attachment{
		Head:   head,
		Follow: func(ctx context.Context) iter.Seq2[Record, error] { return log.Follow(ctx, session, head) },
		Leave:  func() {},
	}, err
}

type knownHead struct {
	session string
	head    uint64
}

type knownHeadKey struct{}

// WithHead returns a context for a session whose head the log has just returned. Within it
// [Log].Read need not ask the leader for the head again, and a read up to the head ends
// there. [Log].Erase erases only the session that has this record: one that was created
// under the same id since is ErrSessionNotFound. A head of 0 takes back what a context says.
func WithHead(ctx context.Context, session string, head uint64) context.Context {
	return context.WithValue(ctx, knownHeadKey{}, knownHead{session, head})
}

// HeadFrom returns the head that [WithHead] has put into ctx for the session.
func HeadFrom(ctx context.Context, session string) (head uint64, known bool) {
	k, _ := ctx.Value(knownHeadKey{}).(knownHead)
	return k.head, k.head > 0 && k.session == session
}

type writerKey struct{}

// WithoutWriter returns a context in which [Log.Follow], or an [Attachment] that is made
// and followed in it, leaves out the records of one writer, so that the writer learns what
// others append. Gaps are still detected. The writer must not be empty.
func WithoutWriter(ctx context.Context, writer string) context.Context {
	return context.WithValue(ctx, writerKey{}, writer)
}

// WriterLeftOut returns the writer of [WithoutWriter], or "".
func WriterLeftOut(ctx context.Context) string {
	writer, _ := ctx.Value(writerKey{}).(string)
	return writer
}
