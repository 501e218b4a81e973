package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
)

// A message that was sent before a session's erasure may be stored after it: its sender was
// slow, or the network. What is compared with the session's last record then fails. What is
// compared with "nothing" succeeds, and its sender may have died before it looks again.
// So whoever finds such a message compares it with the last fence that the session's mark
// names, which stays for an hour.

// fenceOf returns the last fence of a session, 0 if none is known.
func (l *Log) fenceOf(ctx context.Context, session string) (uint64, error) {
	p := Partition(session, l.opts.Partitions)
	m, err := l.lastMessage(ctx, segmentStream(p), erasedSubject(session, p))
	var e erasing
	switch {
	case errors.Is(err, errNoMessage):
		return 0, nil
	case err != nil:
		return 0, err
	case len(m.data) == 0: // of an older version
		return 0, nil
	}
	err = e.read(m)
	return e.Fence, err
}

// outlived reports whether m, a segment or a floor of records up to last that was compared with
// "nothing", is of a session that was erased, and removes it. As long as the fence stands
// that is left to the erasure.
func (l *Log) outlived(ctx context.Context, session string, m message, last uint64) (bool, error) {
	fence, err := l.fenceOf(ctx, session)
	if err != nil || fence < last {
		return false, err
	}
	if l.opts.ReadOnly {
		return true, nil
	}
	stream, _, err := l.place(session)
	if err != nil {
		return false, err
	}
	if _, err := l.messageAt(ctx, stream, fence); !errors.Is(err, errNoMessage) {
		return true, err
	}
	return true, l.wipe(ctx, session, segmentStream(Partition(session, l.opts.Partitions)), m.subject, m.sequence)
}

// blobsTaken reports whether a session's last erasure has taken the blobs of the record at
// seq, which created its session: they were stored when the log had the messages up to since
// and no fence of the session. If the session was fenced after that and before the record,
// the erasure takes, or has taken, what it found of them.
func (l *Log) blobsTaken(ctx context.Context, session, since string, seq uint64) (bool, error) {
	from, err := strconv.ParseUint(since, 10, 64)
	if err != nil {
		return false, fmt.Errorf("%w: header %s of message %d", errDamaged, headerSince, seq)
	}
	fence, err := l.fenceOf(ctx, session)
	return err == nil && from < fence && fence < seq, err
}

// endedErasures remembers which marks say that their erasures are done, so that a node that
// finishes erasures need not ask for each of them again. It is bounded by the marks, which go
// after an hour.
type endedErasures struct {
	mu    sync.Mutex
	until map[int]map[string]time.Time // by partition and session
}

// others returns the sessions whose marks have to be asked for, of those with so many
// messages on the mark's subject. One that is done has one, and each change adds one.
func (d *endedErasures) others(p int, marks map[string]uint64) (sessions []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, now := map[string]time.Time{}, time.Now()
	for session, messages := range marks {
		if until := d.until[p][session]; messages == 1 && now.Before(until) {
			known[session] = until
		} else {
			sessions = append(sessions, session)
		}
	}
	if d.until == nil {
		d.until = map[int]map[string]time.Time{}
	}
	d.until[p] = known
	slices.Sort(sessions)
	return sessions
}

// add remembers a mark that had one message before it was found to say done.
func (d *endedErasures) add(p int, session string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until[p][session] = until
}
