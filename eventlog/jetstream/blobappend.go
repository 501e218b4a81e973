package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/helixd/helixd/eventlog"
)

// An erasure removes the blobs that are there while its fence is, and may be slow: the
// session may have been created again by the time that it gets to one. So a record
// relies only on a blob that was stored when the last fence was gone:
//
//   - An append to a session stores its blobs after the record that it follows,
//     which headerAfter names. Another append of that session may use them while
//     that record is in the log.
//   - An append that creates the session can't know. It looks afterwards whether
//     anything has left the log meanwhile, as a fence would have, and if so stores its
//     blobs again.

// storedBlob is a blob that was stored for an append.
type storedBlob struct {
	ref     blobRef
	payload []byte
	at      []uint64 // its parts
}

// deletes differs if messages have been removed from a log.
type deletes struct {
	First   uint64 `json:"first_seq"`
	Deleted uint64 `json:"num_deleted"`
}

// appendBlob sees to it that the session has a payload, for an append that is to come.
func (l *Log) appendBlob(ctx context.Context, a *pendingAppend, payload []byte) (blobRef, error) {
	ref := refOf(payload)
	for _, b := range a.blobs {
		if b.ref == ref {
			return ref, nil
		}
	}
	if a.expected > 0 {
		after, err := l.blobAfter(ctx, a.session, ref)
		if err != nil && !errors.Is(err, errNoMessage) {
			return ref, err
		}
		if err == nil && after > 0 {
			if there, err := l.inLog(ctx, a.session, after); err != nil || there {
				return ref, err
			}
		}
	} else if len(a.blobs) == 0 {
		var err error
		if a.deletes, err = l.deletes(ctx, a.session, 0); err != nil {
			return ref, err
		}
	}
	at, err := l.storeBlob(ctx, a.session, ref, payload, a.expected)
	a.blobs = append(a.blobs, storedBlob{ref: ref, payload: payload, at: at})
	return ref, err
}

// deletes asks the leader of the session's log, which must have the record at seq.
func (l *Log) deletes(ctx context.Context, session string, seq uint64) (deletes, error) {
	var body struct {
		refusal
		State struct {
			deletes
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	stream, _, err := l.place(session)
	if err == nil {
		err = l.askLeader(ctx, "$JS.API.STREAM.INFO."+stream, struct{}{}, &body)
	}
	if err == nil && body.State.Last < seq {
		err = fmt.Errorf("%w: %w", eventlog.ErrUnavailable, errStaleLeader)
	}
	return body.State.deletes, err
}

// confirmBlobs stores the blobs of an append again that has created its session, if an
// erasure may still take them.
func (l *Log) confirmBlobs(ctx context.Context, a *pendingAppend, last uint64) error {
	if a.expected > 0 || len(a.blobs) == 0 {
		return nil
	}
	now, err := l.deletes(ctx, a.session, last)
	for i := 0; err == nil && now != a.deletes && i < len(a.blobs); i++ {
		b := a.blobs[i]
		_, err = l.storeBlob(ctx, a.session, b.ref, b.payload, last)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	return nil
}

// dropBlobs overwrites the blobs of an append that failed, unless others may use
// them: nothing of an erased session may come back. An append that may still
// create the session keeps them.
func (l *Log) dropBlobs(ctx context.Context, a *pendingAppend, why error) {
	if len(a.blobs) == 0 || a.expected == 0 && errors.Is(why, eventlog.ErrOutcomeUnknown) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaderPatience)
	defer cancel()
	if a.expected > 0 {
		if there, err := l.lives(ctx, a.session, a.expected); err != nil || there {
			return
		}
	}
	// What fails here is left for the next erasure of the session.
	for _, b := range a.blobs {
		if a.expected > 0 {
			_ = l.dropParts(ctx, a.session, b.ref, a.expected)
		}
		for i, at := range b.at {
			_ = l.wipe(ctx, a.session, blobStream, l.blobPrefix(a.session)+b.ref.hash+"."+strconv.Itoa(i), at)
		}
	}
}

// dropParts overwrites the parts of a blob that were stored after a record of an erased
// session, also those whose storing was not answered for.
func (l *Log) dropParts(ctx context.Context, session string, ref blobRef, after uint64) error {
	subject, text := l.blobPrefix(session)+ref.hash+".*", strconv.FormatUint(after, 10)
	for at := uint64(0); ; {
		m, err := l.leaderGet(ctx, blobStream, map[string]any{"seq": at + 1, "next_by_subj": subject})
		if err != nil {
			return err
		}
		if at = m.sequence; first(m.header, headerAfter) == text {
			if err := l.wipe(ctx, session, blobStream, m.subject, at); err != nil {
				return err
			}
		}
	}
}
