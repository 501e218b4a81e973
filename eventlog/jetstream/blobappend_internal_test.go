package jetstream

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestAPayloadOfAnErasedSessionIsNotReliedOn: a part of a large payload is stored when its session
// was erased and created again. The next append has the same payload. The part is then removed, by
// its sender or with the erasure's mark, and the append keeps its payload.
func TestAPayloadOfAnErasedSessionIsNotReliedOn(t *testing.T) {
	t.Parallel()
	large := textEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), inlineBytes+1)
	for _, killed := range []bool{false, true} {
		l := openLog(t, nil)
		old := appended(t, l, "s", 0, textEntries("old", 1))
		sent := false
		late := openHooked(t, l.nc, func(ctx context.Context, point string, do func(context.Context) error) error {
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
			head := appended(t, l, "s", 0, textEntries("new", 1))
			err = do(ctx)
			appended(t, l, "s", head, large)
			return err
		})
		_, err := late.Append(t.Context(), "s", old, large)
		require.Error(t, err)
		require.True(t, sent)
		for range 3 {
			require.NoError(t, finishAt(t.Context(), l, "s", time.Now().Add(doneFor+time.Minute)))
		}
		e, err := l.erasingOf(t.Context(), "s")
		require.NoError(t, err)
		require.Zero(t, e.at)
		requireRecords(t, l, "s", append(textEntries("new", 1), large...))
		l.Close()
	}
}

// TestAnAppendThatFailsReopensNoErasure: an erasure, which is done, has removed the parts that the
// append stored. So there is nothing to overwrite, which the servers would have to report again.
func TestAnAppendThatFailsReopensNoErasure(t *testing.T) {
	t.Parallel()
	l, _ := openSyncing(t, t.TempDir())
	old := appended(t, l, "s", 0, textEntries("old", 1))
	large := textEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("x"), inlineBytes+1)
	var before *erasing
	erase := func(ctx context.Context) {
		_, err := l.Erase(ctx, "s")
		require.NoError(t, err)
		before, err = l.erasingOf(ctx, "s")
		require.NoError(t, err)
		require.True(t, before.Done)
	}
	late, err := Open(t.Context(), l.nc, &Options{Durability: l.opts.Durability, Server: l.opts.Server, hook: func(ctx context.Context, point string, do func(context.Context) error) error {
		if strings.HasPrefix(point, "publish helix.log.") {
			erase(context.WithoutCancel(ctx))
		}
		return do(ctx)
	}})
	require.NoError(t, err)
	defer late.Close()
	_, err = late.Append(t.Context(), "s", old, large)
	require.Error(t, err)
	after, err := l.erasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestAnAppendToAForgottenSessionStoresNoPayload: it is to follow a record of a session that was
// erased, and the erasure's mark is gone: nobody would look for the payload of a sender that dies.
func TestAnAppendToAForgottenSessionStoresNoPayload(t *testing.T) {
	t.Parallel()
	large := textEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("secret"), inlineBytes)
	for name, recreated := range map[string]bool{"free": false, "created again": true} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, nil)
			old := appended(t, l, "s", 0, textEntries("old", 1))
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
			requireForgotten(t, l, "s")
			if recreated {
				appended(t, l, "s", 0, textEntries("new", 1))
			}
			dead := openHooked(t, l.nc, killedAfter("publish helix.blob.", func(context.Context) {}))
			_, err = dead.Append(t.Context(), "s", old, large)
			var conflict *eventlog.ConflictError
			require.ErrorAs(t, err, &conflict)
			parts, err := l.firstFrom(t.Context(), layout.BlobStream, l.blobPrefix("s")+">", 1)
			require.NoError(t, err)
			require.Zero(t, parts)
		})
	}
}
