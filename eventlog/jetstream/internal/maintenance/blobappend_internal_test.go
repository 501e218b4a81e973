package maintenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestAPayloadOfAnErasedSessionIsNotReliedOn: a part of a blob is stored after its
// session was erased and created again. The next append has the same payload. The part is
// then removed, by its sender or with the erasure's mark, and the append keeps its
// payload.
func TestAPayloadOfAnErasedSessionIsNotReliedOn(t *testing.T) {
	t.Parallel()
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), store.InlineBytes+1)
	for _, killed := range []bool{false, true} {
		l := openLog(t, link.Options{})
		old := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 1))
		sent := false
		late := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
			switch {
			case sent && killed:
				return errKilled
			case sent || !strings.HasPrefix(point, "publish helix.blob."):
				return do(ctx)
			}
			sent = true
			ctx = context.WithoutCancel(ctx)
			_, err := l.Erase(ctx, "s")
			require.NoError(t, err)
			head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 1))
			err = do(ctx)
			storetest.Appended(t, l, "s", head, large)
			return err
		})
		_, err := late.Append(t.Context(), "s", old, large)
		require.Error(t, err)
		require.True(t, sent)
		for range 3 {
			require.NoError(t, finishAt(t.Context(), l, "s", time.Now().Add(store.DoneFor+time.Minute)))
		}
		e, err := l.ErasingOf(t.Context(), "s")
		require.NoError(t, err)
		require.Zero(t, e.At)
		storetest.RequireRecords(t, l, "s", append(storetest.TextEntries("new", 1), large...))
		l.Close()
	}
}

// TestAnAppendThatFailsReopensNoErasure: an erasure that is done has removed the parts
// that the append stored. So there is nothing to overwrite, which the servers would have
// to report again.
func TestAnAppendThatFailsReopensNoErasure(t *testing.T) {
	t.Parallel()
	l, _ := openSyncing(t, t.TempDir())
	old := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 1))
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), store.InlineBytes+1)
	var before *store.Erasing
	erase := func(ctx context.Context) {
		_, err := l.Erase(ctx, "s")
		require.NoError(t, err)
		before, err = l.ErasingOf(ctx, "s")
		require.NoError(t, err)
		require.True(t, before.Done)
	}
	late, err := Open(withHook(t.Context(), func(ctx context.Context, point string, do func(context.Context) error) error {
		if strings.HasPrefix(point, "publish helix.log.") {
			erase(context.WithoutCancel(ctx))
		}
		return do(ctx)
	}), l.Conn, link.Options{Durability: l.Opts.Durability, Server: l.Opts.Server})
	require.NoError(t, err)
	defer late.Close()
	_, err = late.Append(t.Context(), "s", old, large)
	require.Error(t, err)
	after, err := l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestAnAppendToAForgottenSessionStoresNoPayload: it follows a record of a session that
// was erased, and the erasure's mark is gone. If its sender died, nothing would look for
// the payload.
func TestAnAppendToAForgottenSessionStoresNoPayload(t *testing.T) {
	t.Parallel()
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("secret"), store.InlineBytes)
	for name, recreated := range map[string]bool{"free": false, "created again": true} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			old := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 1))
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
			requireForgotten(t, l, "s")
			if recreated {
				storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 1))
			}
			dead := openHooked(t, l.Conn, killedAfter("publish helix.blob.", func(context.Context) {}))
			_, err = dead.Append(t.Context(), "s", old, large)
			var conflict *eventlog.ConflictError
			require.ErrorAs(t, err, &conflict)
			parts, err := l.FirstFrom(t.Context(), layout.BlobStream, l.BlobPrefix("s")+">", 1)
			require.NoError(t, err)
			require.Zero(t, parts)
		})
	}
}

// TestADeposedLeaderCostsNoPayload: an append is stored, its answer is lost, and a server
// that leads no more answers that the session does not exist.
func TestADeposedLeaderCostsNoPayload(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	entries := storetest.TextEntries("x", 2)
	entries[1].Payload = bytes.Repeat([]byte("x"), store.InlineBytes+1)
	head := storetest.Appended(t, l, "s", 0, entries[:1])
	deposed := false
	cut := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		switch {
		case strings.HasPrefix(point, "publish helix.log."):
			require.NoError(t, do(ctx))
			deposed = true
			return eventlog.ErrOutcomeUnknown
		case deposed && point == "$JS.API.STREAM.MSG.GET."+layout.LogStream(0):
			return link.ErrNoMessage
		case deposed && point == "$JS.API.STREAM.INFO."+layout.LogStream(0):
			return nil // it counts no messages
		case deposed && point == "$JS.API.STREAM.INFO."+layout.SegmentStream(0):
			return errors.New("no answer")
		}
		return do(ctx)
	})
	cut.Opts.Replicas = 3
	_, err := cut.Append(t.Context(), "s", head, entries[1:])
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.True(t, deposed)
	storetest.RequireRecords(t, l, "s", entries)
}

// TestAFailedAppendRemovesItsPayloadsTogether: otherwise each of them would have the server
// remove all earlier ones again.
func TestAFailedAppendRemovesItsPayloadsTogether(t *testing.T) {
	t.Parallel()
	l, _ := openSyncing(t, t.TempDir())
	failed, requests := false, 0
	late, err := Open(link.WithTuning(t.Context(), link.Tuning{
		Inline: 1,
		Hook: func(ctx context.Context, point string, do func(context.Context) error) error {
			if failed {
				requests++
			} else if session, ok := strings.CutPrefix(point, "publish helix.log.0."); ok {
				failed = true
				storetest.Appended(t, l, session, 0, storetest.TextEntries("first", 1))
			}
			return do(ctx)
		},
	}), l.Conn, link.Options{Durability: l.Opts.Durability, Server: l.Opts.Server})
	require.NoError(t, err)
	defer late.Close()
	requestsOf := func(payloads int) int {
		session := fmt.Sprint("s", payloads)
		failed, requests = false, 0
		_, err := late.Append(t.Context(), session, 0, storetest.TextEntries("x", payloads))
		var conflict *eventlog.ConflictError
		require.ErrorAs(t, err, &conflict)
		parts, err := l.Count(t.Context(), layout.BlobStream, l.BlobPrefix(session)+">")
		require.NoError(t, err)
		require.Zero(t, parts)
		return requests
	}
	few, many := requestsOf(10), requestsOf(40)
	require.Less(t, many, 5*few)
}
