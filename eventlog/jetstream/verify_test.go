package jetstream_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/integrity"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

func TestAHealthyStoreHasNoProblems(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	s := newDiskLog(t)
	want := richHistory(s)
	for range 2 {
		problems, notes, records := s.verifyAll()
		require.Empty(t, problems)
		require.Equal(t, want, records)
		require.Equal(t, []place{{code: integrity.FoundSequencesMissing}}, notes, "the erased sessions'")
		s.stop()
		s.start(true)
	}
	problems, _, _ := s.verifyAll()
	require.Empty(t, problems)
}

// TestSharedBatchesAreHealthy: a session's last record is next to others' in the middle
// of a batch, and any of those is erased.
func TestSharedBatchesAreHealthy(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	s := newDiskLog(t)
	s.stop()
	s.durability = "fsync"
	s.start(false)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			session, head := fmt.Sprint("s", i), uint64(0)
			for n := range 5 {
				var err error
				head, err = eventlog.AppendOnce(t.Context(), s.log, session, fmt.Sprint("w", n), head,
					[]eventlog.Entry{logtest.Text(session, "a"), logtest.Text(session, "b")})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	for i := range 10 {
		_, err := s.log.Erase(t.Context(), fmt.Sprint("s", 6*i))
		require.NoError(t, err)
	}
	problems, _, records := s.verifyAll()
	require.Empty(t, problems)
	require.Equal(t, 500, records)
}

// TestVerifyBesideWriters: changes during the verification are no problem.
func TestVerifyBesideWriters(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	s := newDiskLog(t)
	s.append("s", "first")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ctx := context.WithoutCancel(t.Context())
		head, err := s.log.Head(ctx, "s")
		for i := 0; err == nil; i++ {
			select {
			case <-done:
				return
			default:
			}
			if head, err = eventlog.AppendOnce(ctx, s.log, "s", fmt.Sprint("x", i), head, []eventlog.Entry{
				logtest.Text("s", "a"), logtest.Text("s", "b"),
			}); err != nil {
				break
			}
			switch i % 50 {
			case 10, 30:
				err = s.log.Seal(ctx, "s")
			case 45:
				_, err = s.log.Purge(ctx, now)
			}
			if err == nil && i%400 == 399 {
				_, err = s.log.Trim(ctx, "s", head-100)
			}
		}
		assert.NoError(t, err)
	})
	for range 60 {
		n, err := s.log.Verify(t.Context(), "s", func(f integrity.Finding) {
			if !f.Code.IsNote() {
				t.Errorf("%+v", f)
			}
		})
		require.NoError(t, err)
		require.Positive(t, n)
	}
	close(done)
	wg.Wait()
	wg.Go(func() {
		_, err := s.log.Erase(context.WithoutCancel(t.Context()), "s")
		assert.NoError(t, err)
	})
	for erased := false; !erased; {
		_, err := s.log.Verify(t.Context(), "s", func(f integrity.Finding) {
			erased = f.Code == integrity.FoundSessionMissing
			if !f.Code.IsNote() && !erased {
				t.Errorf("%+v", f)
			}
		})
		require.NoError(t, err)
	}
	wg.Wait()
}

// header is a record's envelope as the log writes it.
func header(writer string, ordinal int, typ string) nats.Header {
	return nats.Header{
		"Helix-Kind": {"chunk"}, "Helix-Type": {typ}, "Helix-Agent": {"s"},
		"Helix-Writer": {writer}, "Helix-Ordinal": {fmt.Sprint(ordinal)},
	}
}

func behind(h nats.Header, seq uint64) nats.Header {
	h["Nats-Expected-Last-Subject-Sequence"] = []string{fmt.Sprint(seq)}
	return h
}

const text = `{"type":"text_delta","delta":"x","agentId":"s","agentType":"a","timestamp":1,"step":1}`

// TestPlantedDamageIsFound plants one kind of damage in session s, between two others,
// and checks every finding.
func TestPlantedDamageIsFound(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	const (
		log  = "HELIX_LOG_0"
		segs = "HELIX_SEG_0"
	)
	large := strings.Repeat("x", 1200<<10) // a blob in three parts
	seal := func(s *diskLog) { require.NoError(s.t, s.log.Seal(s.t.Context(), "s")) }
	purge := func(s *diskLog) {
		_, err := s.log.Purge(s.t.Context(), now)
		require.NoError(s.t, err)
	}
	in := func(code integrity.Code, seq uint64) place { return place{code, "s", seq} }
	for name, plant := range map[string]func(s *diskLog) (problems, notes []place){
		"a record is deleted": func(s *diskLog) ([]place, []place) {
			gone := s.append("s", "a")
			s.append("other", "b")
			s.append("s", "c")
			s.delete(log, gone)
			return []place{in(integrity.FoundGap, gone)}, []place{{code: integrity.FoundSequencesMissing}}
		},
		"one of an append is deleted": func(s *diskLog) ([]place, []place) {
			last := s.append("s", "a", "b", "c", "d")
			s.delete(log, last-2)
			return []place{in(integrity.FoundGap, last-2), in(integrity.FoundOrdinal, last-1)}, []place{{code: integrity.FoundSequencesMissing}}
		},
		"a record that a segment has is deleted": func(s *diskLog) ([]place, []place) {
			gone := s.append("s", "a", "b")
			s.append("s", "c")
			seal(s)
			s.delete(log, gone-1)
			s.delete(log, gone)
			require.Len(s.t, recordsOf(s.t, s.log, "s", 0, 0), 5)
			return []place{in(integrity.FoundGap, gone-1)}, []place{{code: integrity.FoundSequencesMissing}}
		},
		"the end is deleted, which a segment has": func(s *diskLog) ([]place, []place) {
			gone := s.append("s", "a", "b")
			seal(s)
			s.append("other", "x")
			s.delete(log, gone-1)
			s.delete(log, gone)
			return []place{in(integrity.FoundEndLost, gone-1)}, []place{{code: integrity.FoundSequencesMissing}}
		},
		"the end of an append is deleted": func(s *diskLog) ([]place, []place) {
			gone := s.append("s", "a", "b")
			s.append("other", "x")
			s.delete(log, gone)
			return nil, []place{in(integrity.FoundEndUnsure, gone), {code: integrity.FoundSequencesMissing}}
		},
		"all of it is deleted, which segments have": func(s *diskLog) ([]place, []place) {
			last := s.append("s", "a")
			seal(s)
			first := recordsOf(s.t, s.log, "s", 0, 0)[0].Sequence
			s.delete(log, first)
			s.delete(log, first+1)
			s.delete(log, last)
			return []place{in(integrity.FoundGap, first)}, []place{{code: integrity.FoundSequencesMissing}}
		},
		"a superseded writer writes on": func(s *diskLog) ([]place, []place) {
			s.claimed("s")
			head, err := s.log.Head(s.t.Context(), "s")
			require.NoError(s.t, err)
			zombie := s.publish("helix.log.0.s", behind(header("first", 3, "text_delta"), head), []byte(text))
			return []place{in(integrity.FoundFencing, zombie)}, nil
		},
		"a superseded writer writes on without a comparison": func(s *diskLog) ([]place, []place) {
			s.claimed("s")
			s.append("other", "x")
			zombie := s.publish("helix.log.0.s", header("first", 3, "text_delta"), []byte(text))
			return []place{in(integrity.FoundLink, zombie), in(integrity.FoundFencing, zombie)}, nil
		},
		"an append is stored twice": func(s *diskLog) ([]place, []place) {
			s.claimed("s")
			head := s.append("s", "x")
			again := s.publish("helix.log.0.s", behind(header("second", 2, "text_delta"), head), []byte(text))
			return []place{in(integrity.FoundOrdinal, again)}, nil
		},
		"what is no JSON": func(s *diskLog) ([]place, []place) {
			head := s.append("s", "x")
			bad := s.publish("helix.log.0.s", behind(header("w", 1, "text_delta"), head), []byte(`{"type":"text_delta"`))
			return []place{in(integrity.FoundPayload, bad)}, nil
		},
		"what helixd did not write": func(s *diskLog) ([]place, []place) {
			foreign := s.publish("helix.log.0.s", nil, []byte("hello"))
			s.append("s", "x")
			return nil, []place{in(integrity.FoundUnknownKind, foreign)}
		},
		"a segment among others is deleted": func(s *diskLog) ([]place, []place) {
			seal(s)
			last := s.append("s", "a", "b")
			seal(s)
			gone := s.last(segs, "helix.seg.0.s").Sequence
			s.append("s", "c")
			seal(s)
			s.delete(segs, gone)
			return []place{in(integrity.FoundSegmentGap, last)}, nil
		},
		"a segment that alone has the records is deleted": func(s *diskLog) ([]place, []place) {
			seal(s)
			last := s.append("s", "a", "b")
			seal(s)
			gone := s.last(segs, "helix.seg.0.s").Sequence
			purge(s)
			s.append("s", "c")
			seal(s)
			s.delete(segs, gone)
			return []place{in(integrity.FoundSegmentGap, last), in(integrity.FoundGap, last)}, nil
		},
		"the first segment is deleted": func(s *diskLog) ([]place, []place) {
			seal(s)
			gone := s.last(segs, "helix.seg.0.s").Sequence
			last := s.append("s", "a") - 1
			seal(s)
			s.delete(segs, gone)
			return []place{in(integrity.FoundSegmentGap, last-1)}, nil
		},
		"a segment is something else": func(s *diskLog) ([]place, []place) {
			s.append("s", "a")
			seal(s)
			at := s.last(segs, "helix.seg.0.s")
			s.delete(segs, at.Sequence)
			at.Data[len(at.Data)/2] ^= 1
			s.publish("helix.seg.0.s", nil, at.Data)
			return []place{in(integrity.FoundSegment, 1)}, nil
		},
		"a segment is stored twice": func(s *diskLog) ([]place, []place) {
			seal(s)
			s.publish("helix.seg.0.s", nil, s.last(segs, "helix.seg.0.s").Data)
			return []place{in(integrity.FoundSegment, 1)}, nil
		},
		"a segment is at another place": func(s *diskLog) ([]place, []place) {
			seal(s)
			first := s.last(segs, "helix.seg.0.s")
			s.append("s", "a")
			seal(s)
			second := s.last(segs, "helix.seg.0.s")
			s.delete(segs, first.Sequence)
			s.delete(segs, second.Sequence)
			s.publish("helix.seg.0.s", nil, first.Data)
			s.publish("helix.seg.0.s", nil, second.Data)
			return []place{in(integrity.FoundSegment, recordsOf(s.t, s.log, "s", 0, 0)[1].Sequence+1)}, nil
		},
		"the mark of retention is lost": func(s *diskLog) ([]place, []place) {
			seal(s)
			last := s.append("s", "a", "b")
			seal(s)
			purge(s)
			floor, err := s.log.Trim(s.t.Context(), "s", last-1)
			require.NoError(s.t, err)
			require.NotZero(s.t, floor)
			s.delete(segs, s.last(segs, "helix.floor.0.s").Sequence)
			return []place{in(integrity.FoundSegmentGap, floor), in(integrity.FoundGap, floor)}, nil
		},
		"the mark of retention is no number": func(s *diskLog) ([]place, []place) {
			s.publish("helix.floor.0.s", nil, []byte("x"))
			return []place{in(integrity.FoundFloor, 0)}, nil
		},
		"retention has broken off": func(s *diskLog) ([]place, []place) {
			seal(s)
			s.append("s", "a", "b")
			seal(s)
			purge(s)
			floor := recordsOf(s.t, s.log, "s", 0, 0)[0].Sequence
			s.publish("helix.floor.0.s", nil, fmt.Append(nil, floor))
			return nil, []place{in(integrity.FoundTrimming, floor)}
		},
		"a part of a payload is deleted": func(s *diskLog) ([]place, []place) {
			seq := s.append("s", large)
			st, err := s.js.Stream(s.t.Context(), "HELIX_BLOBS")
			require.NoError(s.t, err)
			s.delete("HELIX_BLOBS", st.CachedInfo().State.FirstSeq+1)
			return []place{in(integrity.FoundBlobMissing, seq)}, nil
		},
		"a part of a payload is another": func(s *diskLog) ([]place, []place) {
			seq := s.append("s", large)
			s.append("s", large) // reported once
			st, err := s.js.Stream(s.t.Context(), "HELIX_BLOBS")
			require.NoError(s.t, err)
			m, err := st.GetMsg(s.t.Context(), st.CachedInfo().State.FirstSeq+1)
			require.NoError(s.t, err)
			m.Data[100] = 'y'
			s.publish(m.Subject, nil, m.Data)
			return []place{in(integrity.FoundBlobDamaged, seq)}, nil
		},
		"a payload's address is none": func(s *diskLog) ([]place, []place) {
			head := s.append("s", "x")
			h := behind(header("w", 1, "text_delta"), head)
			h["Helix-Blob"] = []string{"nowhere"}
			seq := s.publish("helix.log.0.s", h, []byte(text))
			return []place{in(integrity.FoundBlobDamaged, seq)}, nil
		},
		"a payload's stand-in names another": func(s *diskLog) ([]place, []place) {
			seq := s.append("s", large)
			m := s.last(log, "helix.log.0.s")
			s.delete(log, seq)
			m.Header.Set("Nats-Expected-Last-Subject-Sequence", fmt.Sprint(recordsOf(s.t, s.log, "s", 0, 0)[1].Sequence))
			seq = s.publish("helix.log.0.s", nats.Header(m.Header), []byte(text))
			return []place{in(integrity.FoundPayload, seq)}, []place{{code: integrity.FoundSequencesMissing}}
		},
		"a payload that nobody names": func(s *diskLog) ([]place, []place) {
			s.publish("helix.blob.0.s."+strings.Repeat("a", 64)+".0", nil, []byte("x"))
			s.publish("helix.blob.0.nobody."+strings.Repeat("a", 64)+".0", nil, []byte("x"))
			return nil, []place{{integrity.FoundBlobUnused, "nobody", 0}, in(integrity.FoundBlobUnused, 0)}
		},
		"messages where there are none": func(s *diskLog) ([]place, []place) {
			for _, subject := range []string{
				"helix.log.0.%zz", "helix.log.0.%41", "helix.seg.0.x!y", "helix.floor.0.a+b", "helix.blob.0.s", "helix.blob.0.s.xyz.0",
				"helix.blob.0.s." + strings.Repeat("a", 64) + ".00", "helix.blob.7.s." + strings.Repeat("a", 64) + ".0",
			} {
				s.publish(subject, nil, []byte("x"))
			}
			foreign := place{code: integrity.FoundForeignSubject}
			return slices.Repeat([]place{foreign}, 8), nil
		},
		"an erasure has broken off": func(s *diskLog) ([]place, []place) {
			seal(s)
			tombstone := s.appendEntries("s", logtest.Fact("s", &fact.Erased{Base: fact.Base{SessionID: "s"}}))
			return nil, []place{in(integrity.FoundErasing, tombstone)}
		},
		"an erasure waits for the replicas": func(s *diskLog) ([]place, []place) {
			_, err := s.log.Erase(s.t.Context(), "s")
			require.NoError(s.t, err)
			s.publish("helix.erased.0.s", nil, nil)
			return nil, []place{in(integrity.FoundErasing, 0), {code: integrity.FoundSequencesMissing}}
		},
		"only the mark of retention is there": func(s *diskLog) ([]place, []place) {
			s.publish("helix.floor.0.lost", nil, []byte("7"))
			return []place{{integrity.FoundEndLost, "lost", 8}}, nil
		},
		"a setting that deletes": func(s *diskLog) ([]place, []place) {
			st, err := s.js.Stream(s.t.Context(), log)
			require.NoError(s.t, err)
			c := st.CachedInfo().Config
			c.MaxAge = time.Hour
			_, err = s.js.UpdateStream(s.t.Context(), c)
			require.NoError(s.t, err)
			return nil, []place{{code: integrity.FoundSettings}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDiskLog(t)
			s.append("before", "a", "b")
			s.append("s", "first", "and")
			s.append("other", "x")
			problems, notes := plant(s)
			s.append("behind", "a", "b")
			gotProblems, gotNotes, _ := s.verifyAll()
			require.ElementsMatch(t, problems, gotProblems)
			require.ElementsMatch(t, notes, gotNotes)
		})
	}
}
