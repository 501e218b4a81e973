package blocks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/internal/blocks"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

const sector = 512

// torn is a folder whose block S/1 has messages on subjects s.0, s.1, …, of which
// s.1 is removed and is about to be overwritten.
type torn struct {
	dir, path  string
	before     []byte // the block
	after      []byte // once it is overwritten
	at, end    int    // of the record
	journaling []byte
}

func newTorn(t *testing.T, size int) *torn {
	t.Helper()
	c := &torn{dir: t.TempDir()}
	c.serve(t, func(s natsjs.Stream, js natsjs.JetStream) {
		for i := range 4 {
			_, err := js.Publish(t.Context(), fmt.Sprint("s.", i), bytes.Repeat([]byte{'a' + byte(i)}, size))
			require.NoError(t, err)
		}
		require.NoError(t, s.DeleteMsg(t.Context(), 2))
	})
	name := filepath.Join("jetstream", blocks.Account, "streams", "S", "msgs", "1.blk")
	c.path = filepath.Join(c.dir, name)
	var err error
	c.before, err = os.ReadFile(c.path)
	require.NoError(t, err)
	places := blocks.Places(&blocks.Scrubber{Subject: "s.1", UpTo: 2}, c.before)
	require.Len(t, places, 1)
	c.at, c.end = int(places[0].Offset), int(places[0].Offset)+places[0].Size
	j := blocks.Journal{Block: filepath.ToSlash(name), Places: places, Seed: [32]byte{1, 2, 3}}
	c.journaling, err = json.Marshal(j)
	require.NoError(t, err)
	f, err := os.OpenFile(c.path, os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, blocks.RedoIn(f, &j))
	require.NoError(t, f.Close())
	c.after, err = os.ReadFile(c.path)
	require.NoError(t, err)
	require.Len(t, c.after, len(c.before))
	return c
}

// serve has a server run on the folder.
func (c *torn) serve(t *testing.T, do func(natsjs.Stream, natsjs.JetStream)) {
	t.Helper()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: c.dir, SyncInterval: time.Minute})
	require.NoError(t, err)
	defer srv.Stop()
	nc, err := srv.Connect()
	require.NoError(t, err)
	defer nc.Close()
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	s, err := js.CreateOrUpdateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s.*"}})
	require.NoError(t, err)
	do(s, js)
}

// cut leaves the block as a power loss may have left it.
func (c *torn) cut(t *testing.T, block []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.path, block, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, blocks.JournalFile), c.journaling, 0o600))
}

// TestACutOverwriteIsRedone: wherever the power loss has cut it.
func TestACutOverwriteIsRedone(t *testing.T) {
	t.Parallel()
	c := newTorn(t, 200)
	for at := c.at; at <= c.end; at++ {
		for _, block := range [][]byte{
			append(bytes.Clone(c.after[:at]), c.before[at:]...), append(bytes.Clone(c.before[:at]), c.after[at:]...),
		} {
			c.cut(t, block)
			require.NoError(t, blocks.Redo(c.dir))
			got, err := os.ReadFile(c.path)
			require.NoError(t, err)
			require.Equal(t, c.after, got, "cut at byte %d", at-c.at)
			require.NoFileExists(t, filepath.Join(c.dir, blocks.JournalFile))
		}
	}
}

// TestACutOverwriteLosesNoOtherMessage: a server that starts has all but the
// overwritten one, with its index and without.
func TestACutOverwriteLosesNoOtherMessage(t *testing.T) {
	t.Parallel()
	c := newTorn(t, 3000)
	first := c.at/sector + 1
	for written := range 1 << (c.end/sector - first + 2) { // which of the sectors
		if written%5 != 0 && written != 1 { // each alone, and many of the others
			continue
		}
		block := bytes.Clone(c.before)
		for i := range c.end/sector - first + 2 {
			from, to := max(c.at, (first+i-1)*sector), min(c.end, (first+i)*sector)
			if written>>i&1 == 1 {
				copy(block[from:to], c.after[from:to])
			}
		}
		c.cut(t, block)
		if written%2 == 0 {
			require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(c.path), "index.db")))
		}
		c.serve(t, func(s natsjs.Stream, _ natsjs.JetStream) {
			info, err := s.Info(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 3, info.State.Msgs, "sectors %b", written)
			for _, seq := range []uint64{1, 3, 4} {
				m, err := s.GetMsg(t.Context(), seq)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint("s.", seq-1), m.Subject)
			}
			_, err = s.GetMsg(t.Context(), 2)
			require.ErrorIs(t, err, natsjs.ErrMsgNotFound)
		})
		got, err := os.ReadFile(c.path)
		require.NoError(t, err)
		require.False(t, bytes.Contains(got, []byte("bbbb")))
	}
}

// TestAJournalLeavesWhatIsNotItsOwn: the server has put another block in the place.
func TestAJournalLeavesWhatIsNotItsOwn(t *testing.T) {
	c := newTorn(t, 200)
	other := append(bytes.Clone(c.before[:c.at]), c.before[c.end:]...) // compacted
	c.cut(t, other)
	require.NoError(t, blocks.Redo(c.dir))
	got, err := os.ReadFile(c.path)
	require.NoError(t, err)
	require.Equal(t, other, got)

	c.cut(t, other)
	require.NoError(t, os.Remove(c.path))
	require.NoError(t, blocks.Redo(c.dir))
	require.NoFileExists(t, c.path)

	c.journaling = []byte(`{"block":"../../passwd"}`)
	c.cut(t, other)
	require.ErrorContains(t, blocks.Redo(c.dir), "which is no block")
	c.journaling = []byte(`{"block`)
	c.cut(t, other)
	require.ErrorContains(t, blocks.Redo(c.dir), "is damaged")
}

// TestAnUnjournaledCutWouldLoseMessages: what the journal is for.
func TestAnUnjournaledCutWouldLoseMessages(t *testing.T) {
	c := newTorn(t, 3000)
	block := append(bytes.Clone(c.after[:c.at+sector]), c.before[c.at+sector:]...)
	require.NoError(t, os.WriteFile(c.path, block, 0o600))
	require.NoError(t, os.RemoveAll(filepath.Join(filepath.Dir(c.path), "index.db")))
	c.serve(t, func(s natsjs.Stream, _ natsjs.JetStream) {
		info, err := s.Info(t.Context())
		require.NoError(t, err)
		require.Less(t, info.State.Msgs, uint64(3))
	})
}
