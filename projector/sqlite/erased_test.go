package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// count returns the result of a counting query on the file.
func (w *world) count(text string) int {
	w.t.Helper()
	n, err := look(w.t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (n int, err error) { return n, tx.QueryRow(text).Scan(&n) })
	require.NoError(w.t, err)
	return n
}

// A large scope's rows are overwritten in parts. Meanwhile nothing of it is found, its
// user can save new memories, and queries see new records. After a restart the work
// continues, until no byte is left.
func TestALargeScopeIsErasedInParts(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	w := newWorld(t)
	w.opts.clearMemories, w.opts.clearPause = 10, time.Hour // one part per start
	s, other := userScope("u"), userScope("other")
	const secret, memories = "unmistakable", 50
	var entries []eventlog.Entry
	for i := range memories {
		id := fmt.Sprint("m", i)
		entries = append(entries, memorySaved(s, id, secret), memoryEmbedded(s, id, embedderA, 1, 2))
	}
	w.append(s.LogID(), append(entries, memoryForgotten(s, "m0"))...)
	w.append(other.LogID(), memorySaved(other, "m", "words"))
	w.open()
	question := readmodel.MemoryQuery{Scope: s, Text: secret, Model: embedderA, Vector: []float32{1, 2}}
	require.Len(t, w.candidates(question).ByWords, 10)
	_, err := w.log.Erase(t.Context(), s.LogID())
	require.NoError(t, err)
	left := func() int { return w.count("SELECT count(*) FROM memories WHERE content = '" + secret + "'") }

	w.append("session", created("session", "a", ""))
	require.Equal(t, []string{"session"}, w.ids(readmodel.SessionFilter{}))
	w.append(other.LogID(), memorySaved(other, "n", "words"))
	require.Len(t, w.memories(other), 2)
	require.Empty(t, w.memories(s))
	require.Empty(t, w.candidates(question))
	_, err = w.models.Memory(t.Context(), s, "m0", embedderA)
	require.ErrorIs(t, err, readmodel.ErrNoMemory)
	require.NotErrorIs(t, err, readmodel.ErrForgotten)
	require.Len(t, asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Pending], error) {
		return w.models.PendingMemories(ctx, embedderB, readmodel.PendingCursor{}, 2*memories)
	}).Items, 2)
	require.Positive(t, left())

	w.append(s.LogID(), memorySaved(s, "m1", "begun again"), memoryEmbedded(s, "m1", embedderA, 2, 1))
	require.Len(t, w.memories(s), 1)
	require.Equal(t, []string{"m1"}, idsOf(w.candidates(question).ByMeaning))
	before := left()
	require.Positive(t, before)
	w.open()
	require.Len(t, w.memories(other), 2)
	require.Eventually(t, func() bool { return left() < before }, time.Minute, 10*time.Millisecond)
	require.Positive(t, left())

	w.opts.clearPause = 0
	w.open()
	require.Len(t, w.memories(s), 1)
	require.Len(t, w.memories(other), 2)
	require.Eventually(t, func() bool { return !inFiles(t, w, secret) }, time.Minute, 10*time.Millisecond)
	requireSound(w)
	require.False(t, inFiles(t, w, secret))
}

// SQLite leaves copies of rows in pages from which it moved them, between the list of a
// page's rows and its rows. They are overwritten, too. Which rows are moved depends on the
// order of all that was written, so the test puts a copy there itself.
func TestErasureRemovesWhatSQLiteMoved(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	const secret = "unmistakable"
	w := newWorld(t)
	for i := range 120 {
		w.append(fmt.Sprint("s", i), created(fmt.Sprint("s", i), "a", "user"), said(fmt.Sprint("s", i), "words"))
	}
	w.open()
	require.Equal(t, 120, w.search("words").Total)
	w.close()
	file, err := os.ReadFile(w.opts.Path)
	require.NoError(t, err)
	size := int(binary.BigEndian.Uint16(file[16:]))
	planted := 0
	for number := 1; number <= len(file)/size; number++ {
		page := file[(number-1)*size : number*size]
		if from, to := gap(int64(number), page); to-from > len(secret) {
			copy(page[to-len(secret):to], secret)
			planted++
		}
	}
	require.Greater(t, planted, 10)
	require.NoError(t, os.WriteFile(w.opts.Path, file, 0o600))
	require.True(t, inFiles(t, w, secret))

	w.open()
	_, err = w.log.Erase(t.Context(), "s1")
	require.NoError(t, err)
	require.Equal(t, 119, w.search("words").Total)
	require.Eventually(t, func() bool { return !inFiles(t, w, secret) }, time.Minute, 10*time.Millisecond)
	damage, err := look(t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (text string, err error) {
		return text, tx.QueryRow("PRAGMA integrity_check").Scan(&text)
	})
	require.NoError(t, err)
	require.Equal(t, "ok", damage)
	w.close()
	require.False(t, inFiles(t, w, secret))
}
