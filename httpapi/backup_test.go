package httpapi_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/snapshot/backup"
)

// TestBackup: all sessions come, and an answer that breaks off is no backup.
func TestBackup(t *testing.T) {
	t.Parallel()
	log := newLog(t).(eventlog.Copier)
	a := newAPIOn(t, log, nil)
	for _, s := range []string{"a", "b/b"} {
		a.append(s, created(s), text(s, strings.Repeat(s, 1000)))
	}
	got := a.get("/backup")
	require.Equal(t, 200, got.status)
	require.Equal(t, "no-store", got.header.Get("Cache-Control"))
	var sessions []string
	_, done, err := backup.Read(t.Context(), strings.NewReader(got.body), backup.Visitor{
		Session: func(session string, _ uint64, _ iter.Seq2[eventlog.Copied, error]) error {
			sessions = append(sessions, session)
			return nil
		},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b/b"}, sessions)
	require.Equal(t, 4, done.Records)

	// The first session is more than is packed at once; the second one fails.
	const large = 4 << 20
	noise := strings.Builder{}
	for i := range large / 4 {
		noise.WriteString(string(rune(0x4e00 + i*7919%20000)))
	}
	a.append("a2", text("a2", noise.String()))
	broken := newAPIOn(t, unreadable{log, "b/b"}, nil)
	resp, err := broken.http.Client().Get(broken.http.URL + "/backup")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	cut, err := io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, _, err = backup.Read(t.Context(), bytes.NewReader(cut), backup.Visitor{})
	require.ErrorIs(t, err, backup.ErrDamaged)

	// What fails before anything was sent is an error answer.
	newAPIOn(t, unreadable{log, "a"}, nil).get("/backup").failed(t, 500, api.CodeInternalError)
	newAPIOn(t, struct{ eventlog.Log }{memory.New()}, nil).get("/backup").failed(t, 501, api.CodeNotImplemented)
}

// unreadable is a log of which one session is damaged.
type unreadable struct {
	eventlog.Copier
	session string
}

func (u unreadable) Head(ctx context.Context, session string) (uint64, error) {
	if session == u.session {
		return 1, nil
	}
	return u.Copier.Head(ctx, session)
}

func (u unreadable) Copy(ctx context.Context, session string, upTo uint64) (uint64, iter.Seq2[eventlog.Copied, error], error) {
	if session == u.session {
		return 0, nil, eventlog.ErrDamaged
	}
	return u.Copier.Copy(ctx, session, upTo)
}
