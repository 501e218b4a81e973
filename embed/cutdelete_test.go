package embed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

// failDelete has the server fail to overwrite a message when it has stored that the
// message is deleted, and returns what a kill at that moment leaves.
func failDelete(t *testing.T, dir string, s natsjs.Stream, seq uint64, block string) (killed string) {
	t.Helper()
	inTheWay := filepath.Join(filepath.Dir(glob(t, dir, "1.blk")[0]), block+".tmp")
	require.NoError(t, os.Mkdir(inTheWay, 0o700))
	require.ErrorContains(t, s.SecureDeleteMsg(t.Context(), seq), "failed to create temporary file")
	killed = t.TempDir()
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	return killed
}

// TestASecureDeleteThatAKillCutOff: the server has stored that a message is deleted, and
// has not overwritten it. The next start does, wherever the message is.
func TestASecureDeleteThatAKillCutOff(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, compression := range []natsjs.StoreCompression{natsjs.NoCompression, natsjs.S2Compression} {
		for name, c := range map[string]struct {
			size   int
			seq    uint64
			block  string
			killed bool
		}{
			"in the last block":           {size: 100, seq: 4, block: "1.blk", killed: true},
			"at the end":                  {size: 100, seq: 60, block: "1.blk", killed: true},
			"at the beginning":            {size: 100, seq: 2, block: "1.blk", killed: true},
			"in a block before":           {size: 400 << 10, seq: 22, block: "2.blk", killed: true},
			"by a server that is stopped": {size: 100, seq: 4, block: "1.blk"},
		} {
			t.Run(fmt.Sprint(compression, " ", name), func(t *testing.T) {
				dir := t.TempDir()
				srv := embedtest.Server(t, embed.Options{DataDir: dir})
				js, s := streamS(t, srv, compression)
				last := fill(t, js, 30, c.size, "s.kept", "s.gone")
				for seq := uint64(2); seq <= last; seq += 2 {
					if seq != c.seq {
						require.NoError(t, s.SecureDeleteMsg(t.Context(), seq))
					}
				}
				killed := failDelete(t, dir, s, c.seq, c.block)
				srv.Stop()
				if c.killed {
					dir = killed
				}
				files, err := testkit.Scan(t.Context(), dir, secret)
				require.NoError(t, err)
				require.NotEmpty(t, files)

				srv = embedtest.Server(t, embed.Options{DataDir: dir})
				requireNowhere(t, dir, secret)
				_, s = streamS(t, srv, compression)
				require.EqualValues(t, 30, s.CachedInfo().State.Msgs)
				for seq := uint64(1); seq <= last; seq++ {
					m, err := s.GetMsg(t.Context(), seq)
					if seq%2 == 0 {
						require.ErrorIs(t, err, natsjs.ErrMsgNotFound)
						continue
					}
					require.NoError(t, err)
					require.Equal(t, "s.kept", m.Subject)
				}
				srv.Stop()
				require.Empty(t, damageOf(t, dir))
			})
		}
	}
}

// TestACutSecureDeleteBesideADamagedBlock: a compressed block that can't be read keeps the server from
// starting only if it may hold the message that is to be overwritten.
func TestACutSecureDeleteBesideADamagedBlock(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	const gone, inBlock = 4, "1.blk"
	for name, c := range map[string]struct {
		block   string
		at      func(size int) int
		refused bool
	}{
		"a later block": {block: "2.blk", at: func(int) int { return 30 }},
		"its own block": {block: inBlock, at: func(size int) int { return size - 20 }, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			srv := embedtest.Server(t, embed.Options{DataDir: dir})
			js, s := streamS(t, srv, natsjs.S2Compression)
			last := fill(t, js, 30, 400<<10, "s.kept", "s.gone")
			for seq := uint64(2); seq <= last; seq += 2 {
				if seq != gone {
					require.NoError(t, s.SecureDeleteMsg(t.Context(), seq))
				}
			}
			killed := failDelete(t, dir, s, gone, inBlock)
			srv.Stop()
			path := glob(t, killed, c.block)[0]
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "cmp", string(raw[:3]))
			for i := range 10 {
				raw[c.at(len(raw))+i] ^= 0xff
			}
			require.NoError(t, os.WriteFile(path, raw, 0o600))

			srv, err = embed.Start(t.Context(), embed.Options{DataDir: killed})
			if c.refused {
				require.ErrorContains(t, err, "damaged and may hold bytes that must be overwritten")
				return
			}
			require.NoError(t, err)
			srv.Stop()
			requireNowhere(t, killed, secret)
		})
	}
}
