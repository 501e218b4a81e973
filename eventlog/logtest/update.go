package logtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// updating is a caller of [eventlog.Update] that counts.
type updating struct {
	t              *testing.T
	log            eventlog.Log
	proposed, read int
	writer         string
}

// update appends texts to session s, of which the caller knows head, after rival has
// appended that often; current: the head was just read. It appends nothing if its writer
// is in the log.
func (u *updating) update(ctx context.Context, head uint64, current bool, rival int, texts ...string) (uint64, error) {
	u.proposed, u.read = 0, 0
	o := eventlog.UpdateOptions{Head: head, Current: current, Writer: func() string { return u.writer }}
	known := false
	o.CatchUp = func(ctx context.Context) (uint64, error) {
		u.read++
		for r, err := range eventlog.After(ctx, u.log, "s", head) {
			if err != nil {
				return 0, err
			}
			head, known = r.Sequence, known || r.Writer == u.writer
		}
		return head, nil
	}
	return eventlog.Update(ctx, u.log, "s", o, func(at uint64) ([]eventlog.Entry, error) {
		require.Equal(u.t, head, at)
		if u.proposed++; u.proposed <= rival {
			now, err := u.log.Head(ctx, "s")
			if errors.Is(err, eventlog.ErrSessionNotFound) {
				now, err = 0, nil
			}
			require.NoError(u.t, err)
			append1(u.t, u.log, "s", now, "rival")
		}
		var entries []eventlog.Entry
		for _, text := range texts {
			entries = append(entries, Text("s", text))
		}
		if known {
			return nil, nil
		}
		return entries, nil
	})
}

// updates: what is decided on a session's head is appended after that head, once.
func updates(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	u := &updating{t: t, log: faulty, writer: "first"}
	content := func() []string { return texts(t, collect(t, log.Read(ctx, "s", 0, 0))) }

	head, err := u.update(ctx, 0, true, 2, "a", "b")
	require.NoError(t, err)
	require.Equal(t, []string{"rival", "rival", "a", "b"}, content())
	require.Equal(t, [2]int{3, 2}, [2]int{u.proposed, u.read}, "a conflict is proposed for again, at the new head")

	u.writer = "known head"
	before, err := u.update(ctx, head, false, 0, "c")
	require.NoError(t, err)
	require.Greater(t, before, head)
	require.Equal(t, [2]int{1, 0}, [2]int{u.proposed, u.read}, "a head that is right needs no read")

	faulty.Next(LostAnswer)
	u.writer = "lost"
	last, err := u.update(ctx, before, false, 0, "d")
	require.NoError(t, err)
	require.Equal(t, 1, u.proposed, "what became of it is known")
	require.Equal(t, []string{"rival", "rival", "a", "b", "c", "d"}, content())

	again, err := u.update(ctx, before, false, 0, "d")
	require.NoError(t, err)
	require.Equal(t, last, again, "it is found where it is")
	again, err = u.update(ctx, head, false, 0, "d")
	require.NoError(t, err)
	require.Equal(t, last, again)
	require.Equal(t, [2]int{2, 1}, [2]int{u.proposed, u.read}, "or by a caller that reads further")
	again, err = u.update(ctx, last, false, 0)
	require.NoError(t, err)
	require.Equal(t, last, again)
	require.Equal(t, [2]int{2, 1}, [2]int{u.proposed, u.read}, "that there is nothing to do counts at a head that was read only")
	require.Len(t, content(), 6, "what is repeated appends nothing")
	unknownUpdate(t, faulty, u, last)
	erasedUpdate(t, log, u, last)
}

// unknownUpdate: an append of which nobody knows what has become is not proposed again.
func unknownUpdate(t *testing.T, faulty *Faulty, u *updating, head uint64) {
	ctx, cancel := context.WithCancel(ctxOf(t))
	faulty.Next(slices.Repeat([]Fault{LostRequest}, 1000)...)
	faulty.OnFault = cancel
	u.writer = "unknown"
	_, err := u.update(ctx, head, false, 0, "never")
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.Equal(t, [2]int{1, 0}, [2]int{u.proposed, u.read})
	now, err := faulty.Head(ctxOf(t), "s")
	require.NoError(t, err)
	require.Equal(t, head, now)
}

// erasedUpdate: a caller whose session was erased learns that from CatchUp; what propose
// returns as an error is the caller's, also if it is a conflict.
func erasedUpdate(t *testing.T, log eventlog.Log, u *updating, head uint64) {
	ctx := ctxOf(t)
	refused := &eventlog.ConflictError{Head: 7}
	_, err := eventlog.Update(ctx, log, "s", eventlog.UpdateOptions{Head: head, Current: true}, func(uint64) ([]eventlog.Entry, error) {
		return nil, refused
	})
	require.Same(t, refused, err)
	_, err = log.Erase(ctx, "s")
	require.NoError(t, err)
	append1(t, log, "s", 0, "new")
	u.log, u.writer = log, "of the old"
	_, err = u.update(ctx, head, false, 0, "of the old")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.Equal(t, []string{"new"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}
