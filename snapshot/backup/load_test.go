package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot/backup"
)

// TestABackupIsOfOneMoment: while others write, each session is backed up with all
// records up to its partition's end, in whole appends, and with no later ones.
func TestABackupIsOfOneMoment(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newStore(t, 2)
	const sessions, perAppend = 6, 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	for i := range sessions {
		session := fmt.Sprint("s", i)
		s.append(session, logtest.Text(session, "a"), logtest.Text(session, "b"), logtest.Text(session, "c"))
		writers.Go(func() {
			head, err := s.log.Head(ctx, session)
			for n := 0; err == nil; n++ {
				var entries []eventlog.Entry
				for range perAppend {
					entries = append(entries, logtest.Text(session, strings.Repeat("x", 1+n%40)))
				}
				if head, err = eventlog.AppendOnce(ctx, s.log, session, fmt.Sprint("x", n), head, entries); err == nil && n%50 == 49 {
					err = s.log.Seal(ctx, session)
				}
			}
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	var files [][]byte
	for range 8 {
		var out bytes.Buffer
		_, err := backup.Take(t.Context(), s.log, s.states, &out, backup.Options{})
		require.NoError(t, err)
		files = append(files, out.Bytes())
	}
	cancel()
	writers.Wait()
	for _, file := range files {
		var ends []uint64
		_, done, err := backup.Read(t.Context(), bytes.NewReader(file), backup.Visitor{
			Begin: func(h backup.Header) error { ends = h.Ends; return nil },
			Session: func(session string, _ uint64, records iter.Seq2[eventlog.Copied, error]) error {
				var want, got []uint64
				for r, err := range s.log.Read(t.Context(), session, 0, 0) {
					require.NoError(t, err)
					if r.Sequence <= ends[s.log.PartitionOf(session)] {
						want = append(want, r.Sequence)
					}
				}
				for r, err := range records {
					require.NoError(t, err)
					got = append(got, r.Sequence)
				}
				require.Equal(t, want, got)
				require.Zero(t, len(got)%perAppend)
				return nil
			},
		})
		require.NoError(t, err)
		require.Equal(t, sessions, done.Sessions)
	}
	to := newServer(t)
	to.restore(files[len(files)-1])
	to.verify()
}

// hooked calls functions before a copy begins, before its first record and in the middle
// of it.
type hooked struct {
	eventlog.Copier
	before, first, amid func(session string)
}

func (h hooked) Copy(ctx context.Context, session string, upTo uint64) (uint64, iter.Seq2[eventlog.Copied, error], error) {
	if h.before != nil {
		h.before(session)
	}
	floor, records, err := h.Copier.Copy(ctx, session, upTo)
	return floor, func(yield func(eventlog.Copied, error) bool) {
		if h.first != nil {
			h.first(session)
		}
		n := 0
		for r, err := range records {
			if n++; n == 100 && h.amid != nil { // in the first page of two
				h.amid(session)
			}
			if !yield(r, err) {
				return
			}
		}
	}, err
}

// TestChangesDuringABackup: a session that is erased is left out, or the backup fails;
// the same holds for a session that is created, continues or is trimmed.
func TestChangesDuringABackup(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for name, tc := range map[string]struct {
		before, first, amid func(s *store, session string)
		err                 error
		sessions            int
	}{
		"erased before": {before: func(s *store, session string) {
			_, err := s.states.Erase(s.t.Context(), session)
			require.NoError(s.t, err)
		}, sessions: 1},
		"erased amid": {amid: func(s *store, session string) {
			_, err := s.states.Erase(s.t.Context(), session)
			require.NoError(s.t, err)
		}, err: backup.ErrChanged},
		"erased and created again amid": {amid: func(s *store, session string) {
			_, err := s.states.Erase(s.t.Context(), session)
			require.NoError(s.t, err)
			s.append(session, logtest.Text(session, "a"))
		}, err: backup.ErrChanged},
		"erased and created again at the beginning": {first: func(s *store, session string) {
			_, err := s.states.Erase(s.t.Context(), session)
			require.NoError(s.t, err)
			s.append(session, logtest.Text(session, "a"))
		}, sessions: 1},
		"continues": {amid: func(s *store, session string) {
			s.append(session, logtest.Text(session, "a"))
			s.append("created", logtest.Text("created", "a"))
		}, sessions: 2},
		"trimmed before": {before: func(s *store, _ string) { s.trim() }, sessions: 2},
		"all of it is trimmed": {before: func(s *store, session string) {
			s.append(session, logtest.Text(session, "a"))
			require.NoError(s.t, s.log.Seal(s.t.Context(), session))
			s.trim()
		}, err: backup.ErrChanged},
		"purged amid": {amid: func(s *store, _ string) {
			_, err := s.log.Purge(s.t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
			require.NoError(s.t, err)
		}, sessions: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t, 1)
			for _, session := range []string{"changes", "other"} {
				head := uint64(0)
				for i := range 3 {
					var entries []eventlog.Entry
					for range 200 {
						entries = append(entries, logtest.Text(session, "a"))
					}
					var err error
					head, err = eventlog.AppendOnce(t.Context(), s.log, session, fmt.Sprint("w", i), head, entries)
					require.NoError(t, err)
					if !strings.HasPrefix(name, "erased ") {
						require.NoError(t, s.log.Seal(t.Context(), session))
					}
				}
			}
			log := hooked{Copier: s.log}
			if tc.before != nil {
				log.before = func(session string) {
					if session == "changes" {
						log.before = nil
						tc.before(s, session)
					}
				}
			}
			if tc.first != nil {
				begun := false
				log.first = func(session string) {
					if session == "changes" && !begun {
						begun = true
						tc.first(s, session)
					}
				}
			}
			if tc.amid != nil {
				log.amid = func(session string) {
					if session == "changes" {
						tc.amid(s, session)
					}
				}
			}
			var out bytes.Buffer
			done, err := backup.Take(t.Context(), log, s.states, &out, backup.Options{})
			require.ErrorIs(t, err, tc.err)
			if tc.err != nil {
				_, _, err := backup.Read(t.Context(), bytes.NewReader(out.Bytes()), backup.Visitor{})
				require.ErrorIs(t, err, backup.ErrDamaged)
				return
			}
			require.Equal(t, tc.sessions, done.Sessions)
			to := newServer(t)
			to.restore(out.Bytes())
			to.verify()
			require.Len(t, to.sessions(), tc.sessions)
		})
	}
}

// fails fails after that many bytes.
type fails struct{ left int }

var errFull = errors.New("the disk is full")

func (f *fails) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestFailures(t *testing.T) {
	t.Parallel()
	s := newStore(t, 1)
	s.create("s", 50)
	file := s.take(backup.Options{})
	for left := 0; left < len(file)-100; left += 100 { // the next one may be some bytes shorter
		_, err := backup.Take(t.Context(), s.log, s.states, &fails{left}, backup.Options{})
		require.ErrorIs(t, err, errFull)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errFull)
	_, err := backup.Take(ctx, s.log, s.states, io.Discard, backup.Options{})
	require.Error(t, err)
	_, _, err = backup.Read(ctx, bytes.NewReader(file), backup.Visitor{})
	require.ErrorIs(t, err, errFull)
	_, _, err = backup.Read(t.Context(), io.MultiReader(bytes.NewReader(file[:200]), failingReader{}), backup.Visitor{})
	require.ErrorIs(t, err, errFull)
	require.NotErrorIs(t, err, backup.ErrDamaged)
	_, err = backup.Restore(t.Context(), bytes.NewReader(file), func(backup.Header) (backup.Target, error) { return backup.Target{}, errFull })
	require.ErrorIs(t, err, errFull)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errFull }
