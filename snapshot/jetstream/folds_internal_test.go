package jetstream

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/snapshot"
)

// twoNodes returns the saved folds as two nodes know them.
func twoNodes(t *testing.T) (a, b *Folds) {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Minute})
	for _, f := range []**Folds{&a, &b} {
		var err error
		*f, err = Open(t.Context(), nc, layout.Hashed(1), 1)
		require.NoError(t, err)
	}
	return a, b
}

// replica is a stream whose direct gets a replica answers that has nothing yet, and whose
// removals come after before.
type replica struct {
	natsjs.Stream
	empty  bool
	before func()
}

func (r replica) GetLastMsgForSubject(ctx context.Context, subject string) (*natsjs.RawStreamMsg, error) {
	if r.empty {
		return nil, natsjs.ErrMsgNotFound
	}
	return r.Stream.GetLastMsgForSubject(ctx, subject)
}

func (r replica) SecureDeleteMsg(ctx context.Context, seq uint64) error {
	r.before()
	return r.Stream.SecureDeleteMsg(ctx, seq)
}

// publisher publishes to a subject after before.
type publisher struct {
	natsjs.JetStream
	subject string
	before  func()
}

func (p publisher) PublishMsg(ctx context.Context, m *nats.Msg, opts ...natsjs.PublishOpt) (*natsjs.PubAck, error) {
	if m.Subject == p.subject {
		p.before()
	}
	return p.JetStream.PublishMsg(ctx, m, opts...)
}

const foldAt20 = "helix.snap.0.s.20"

func fold(version int, size int) snapshot.Saved {
	return snapshot.Saved{
		Sequence: 20, Version: version, Digest: "d", State: []byte(`"` + strings.Repeat(string(rune('0'+version)), size) + `"`),
	}
}

func save(t *testing.T, f *Folds, s snapshot.Saved) {
	t.Helper()
	_, err := f.Save(t.Context(), "s", s)
	require.NoError(t, err)
}

// requireFold requires that the saved fold is that one, whole.
func requireFold(t *testing.T, f *Folds, want snapshot.Saved) {
	t.Helper()
	got, err := f.Nearest(t.Context(), "s", 20, snapshot.JSON)
	require.NoError(t, err)
	require.Equal(t, want.Version, got.Version)
	require.True(t, string(want.State) == string(got.State))
}

// TestAReplicaThatLagsHidesNoFold: the leader knows what a replica does not have yet.
func TestAReplicaThatLagsHidesNoFold(t *testing.T) {
	a, b := twoNodes(t)
	save(t, a, fold(2, 1_200_000))
	b.streams[0] = replica{Stream: b.streams[0], empty: true, before: func() {}}
	requireFold(t, b, fold(2, 1_200_000))
	save(t, b, fold(2, 1_200_000))
	save(t, b, fold(3, 1_200_000))
	requireFold(t, a, fold(3, 1_200_000))
}

// TestAReplicaThatLagsHidesNoPage: a fold is not damaged if only a replica that answers lacks
// pages of it.
func TestAReplicaThatLagsHidesNoPage(t *testing.T) {
	a, b := twoNodes(t)
	const pages = pageRequest + 10 // more than one request asks for
	want := snapshot.Saved{Sequence: 20, Form: "f", Version: 2, Digest: "d"}
	for i := range pages {
		want.State = append(want.State, strings.Repeat(fmt.Sprintf("%04d", i), leastPage/4)...)
		want.Cuts = append(want.Cuts, len(want.State))
	}
	save(t, a, want)
	whole := func() bool {
		t.Helper()
		got, err := b.Nearest(t.Context(), "s", 20, "f")
		require.NoError(t, err)
		require.True(t, len(got.State) == 0 || bytes.Equal(want.State, got.State))
		return len(got.State) > 0
	}
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Minute})
	late, err := Open(t.Context(), nc, layout.Hashed(1), 1)
	require.NoError(t, err)
	b.nc = nc // it asks any replica for pages on it; all else has its own connection
	require.True(t, whole(), "the replica has none of the pages")

	some := want
	some.State, some.Cuts = want.State[:leastPage*pages/2], want.Cuts[:pages/2]
	save(t, late, some)
	require.True(t, whole(), "the replica has half of the pages")

	require.NoError(t, a.erase(t.Context(), a.streams[0], pageSubject("helix.snap.0.s.", hashOf(want.State[:leastPage]))))
	require.NoError(t, late.erase(t.Context(), late.streams[0], ">"))
	require.False(t, whole(), "the leader has not all of the pages")
}

// TestAReplicaThatLagsDelaysNoErasure: a replica may not have yet what the leader lists.
func TestAReplicaThatLagsDelaysNoErasure(t *testing.T) {
	a, b := twoNodes(t)
	save(t, a, fold(2, 1_200_000))
	b.streams[0] = replica{Stream: b.streams[0], empty: true, before: func() {}}
	require.NoError(t, b.Erase(t.Context(), "s"))
	all, err := a.Sequences(t.Context(), "s", snapshot.JSON)
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestFoldsForReadingStayAsTheyAre: they store and erase nothing, also if the log has grown
// since and the session's stream does not exist.
func TestFoldsForReadingStayAsTheyAre(t *testing.T) {
	a, _ := twoNodes(t)
	save(t, a, fold(2, 100))
	places := layout.Hashed(2)
	b, err := OpenExisting(t.Context(), a.nc, places)
	require.NoError(t, err)
	require.Len(t, b.streams, 2)
	require.Nil(t, b.streams[1])
	for _, session := range []string{"s", "t"} {
		require.Equal(t, session == "t", places.PartitionOf(session) == 1)
		for _, form := range []snapshot.Form{snapshot.JSON, "f"} {
			other := fold(3, 100)
			other.Form = form
			_, err = b.Save(t.Context(), session, other)
			require.ErrorIs(t, err, errReading)
		}
		require.ErrorIs(t, b.Erase(t.Context(), session), errReading)
	}
	requireFold(t, a, fold(2, 100))
}

// TestASlowSaveTakesNoFoldApart: a node that saves a fold finds that another one has stored
// one of another version meanwhile, and dropped its records. That one stays whole.
func TestASlowSaveTakesNoFoldApart(t *testing.T) {
	for name, tc := range map[string]struct {
		size  int
		other int // the version that the other node saves
	}{
		"small":        {100, 2},
		"large":        {1_200_000, 2},
		"small, equal": {100, 1},
		"large, equal": {1_200_000, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := twoNodes(t)
			meanwhile := sync.OnceFunc(func() { save(t, a, fold(tc.other, tc.size)) })
			if tc.size > partBytes { // parts of an unfinished save: b removes the first one
				_, err := a.once(t.Context(), &nats.Msg{Subject: foldAt20 + ".0", Data: []byte("unfinished")})
				require.NoError(t, err)
				b.streams[0] = replica{Stream: b.streams[0], before: meanwhile}
			}
			b.js = publisher{JetStream: b.js, subject: foldAt20, before: meanwhile}
			_, err := b.Save(t.Context(), "s", fold(1, tc.size))
			if tc.other == 1 {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "another node")
			}
			requireFold(t, a, fold(tc.other, tc.size))
		})
	}
}
