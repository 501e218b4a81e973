package embed_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

// filled returns a stopped server's data folder with a stream S of so many
// messages on subjects s.0.end, s.1.end, …, of which some are deleted, and the file of
// its first block.
func filled(t *testing.T, messages, size int, compression natsjs.StoreCompression) (dir, block string) {
	t.Helper()
	dir = t.TempDir()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: dir, SyncInterval: time.Minute})
	require.NoError(t, err)
	defer srv.Stop()
	nc, err := srv.Connect()
	require.NoError(t, err)
	defer nc.Close()
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(patience))
	require.NoError(t, err)
	s, err := js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s.*.end"}, Compression: compression})
	require.NoError(t, err)
	for i := range messages {
		m := nats.NewMsg(fmt.Sprintf("s.%d.end", i))
		if i%2 == 0 {
			m.Header.Set("A-Header", fmt.Sprint("value ", i))
		}
		m.Data = bytes.Repeat(fmt.Appendf(nil, "%d.", rand.Uint64()), size/20+1)
		_, err := js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, s.DeleteMsg(t.Context(), 3))
	require.NoError(t, s.SecureDeleteMsg(t.Context(), 5))
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream/*/streams/S/msgs/1.blk"))
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	return dir, blocks[0]
}

func damageOf(t *testing.T, dir string) (found []embed.Damage) {
	t.Helper()
	f, err := embed.OpenFolder(dir)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Check(t.Context(), func(d embed.Damage) {
		require.NotEmpty(t, d.Reason)
		found = append(found, d)
	}))
	return found
}

// salvaged returns the subjects of the messages that a server has which is
// started on a salvaged copy.
func salvaged(t *testing.T, dir string) (subjects []string) {
	t.Helper()
	f, err := embed.OpenFolder(dir)
	require.NoError(t, err)
	defer f.Close()
	copied := t.TempDir()
	require.NoError(t, f.Salvage(t.Context(), copied))
	require.Empty(t, damageOf(t, copied))
	srv := embedtest.Server(t, embed.Options{DataDir: copied, SyncInterval: time.Minute})
	_, js := connect(t, srv)
	s, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	info, err := s.Info(t.Context(), natsjs.WithSubjectFilter(">"))
	require.NoError(t, err)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		if m, err := s.GetMsg(t.Context(), seq); err == nil {
			subjects = append(subjects, m.Subject)
		}
	}
	require.Len(t, info.State.Subjects, len(subjects))
	return subjects
}

// where tells the record of a block that an offset is in, and the offset
// within.
func where(block []byte, offset int) (sequence uint64, within, size int) {
	for at := 0; at < len(block); {
		size = int(binary.LittleEndian.Uint32(block[at:]) &^ (1 << 31))
		if offset < at+size {
			return binary.LittleEndian.Uint64(block[at+4:]), offset - at, size
		}
		at += size
	}
	return 0, 0, 0
}

// TestEveryFlippedBitIsSeen: wherever it is, also where a server doesn't look.
func TestEveryFlippedBitIsSeen(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, path := filled(t, 8, 40, natsjs.NoCompression)
	require.Empty(t, damageOf(t, dir))
	block, err := os.ReadFile(path)
	require.NoError(t, err)
	for offset := range testkit.Positions(7) {
		if offset >= len(block) {
			break
		}
		sequence, within, _ := where(block, offset)
		overwritten := sequence>>62 != 0
		for _, bit := range []int{offset % 8, (offset + 3) % 8} {
			damaged := bytes.Clone(block)
			damaged[offset] ^= 1 << bit
			require.NoError(t, os.WriteFile(path, damaged, 0o640))
			found := damageOf(t, dir)
			if overwritten && (within == 20 || within == 21) {
				continue // the length of a subject that is not there any more
			}
			place := fmt.Sprintf("bit %d of byte %d of message %d", bit, within, sequence)
			require.Len(t, found, 1, place)
			d := found[0]
			require.Equal(t, "S", d.Stream)
			require.Equal(t, "1.blk", filepath.Base(d.File))
			require.False(t, d.Torn, place)
			require.EqualValues(t, offset-within, d.Offset, place)
			if overwritten {
				continue
			}
			require.Less(t, d.After, sequence, place)
			require.True(t, d.Before == 0 || d.Before > sequence, place)
			if within < 4 || within >= 12 {
				require.Equal(t, sequence, d.Sequence, place)
			}
		}
	}
}

// TestASalvagedCopyHasAllButTheDamaged: one flipped bit costs one message,
// where a server would cut off the rest of the file, or run out of memory.
func TestASalvagedCopyHasAllButTheDamaged(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, path := filled(t, 12, 40, natsjs.NoCompression)
	all := salvaged(t, dir)
	require.Len(t, all, 10)
	block, err := os.ReadFile(path)
	require.NoError(t, err)
	tried := 0
	for at := 0; at < len(block); tried++ {
		sequence, _, size := where(block, at)
		if sequence&(1<<62) != 0 {
			break // it only says that a message was deleted, which would come back
		}
		// The length, the highest byte of the sequence, the subject, the hash.
		for _, offset := range []int{0, 1, 11, 22, size - 1} {
			damaged := bytes.Clone(block)
			damaged[at+offset] ^= 1 << 4
			require.NoError(t, os.WriteFile(path, damaged, 0o640))
			var want []string
			for _, subject := range all {
				if subject != fmt.Sprintf("s.%d.end", sequence-1) {
					want = append(want, subject)
				}
			}
			require.Equal(t, want, salvaged(t, dir), "byte %d of message %d", offset, sequence)
		}
		at += size
	}
	require.GreaterOrEqual(t, tried, 12)
}

func TestACompressedBlockIsCheckedAndSalvaged(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, path := filled(t, 120, 150<<10, natsjs.S2Compression) // two blocks
	block, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "cmp", string(block[:3]))
	require.Empty(t, damageOf(t, dir))
	require.Len(t, salvaged(t, dir), 118)
	for _, offset := range []int{len(block) / 2, len(block) - 20} {
		damaged := bytes.Clone(block)
		damaged[offset] ^= 1
		require.NoError(t, os.WriteFile(path, damaged, 0o640))
		found := damageOf(t, dir)
		require.NotEmpty(t, found)
		require.Contains(t, found[len(found)-1].Reason, "decompress")
		require.GreaterOrEqual(t, len(salvaged(t, dir)), 50, "a server has none of the block")
	}
}

func TestWhatACrashCutOffIsTold(t *testing.T) {
	dir, path := filled(t, 6, 40, natsjs.NoCompression)
	block, err := os.ReadFile(path)
	require.NoError(t, err)
	_, _, size := where(block, len(block)-1)
	for cut := 1; cut < size; cut++ {
		require.NoError(t, os.WriteFile(path, block[:len(block)-cut], 0o640))
		found := damageOf(t, dir)
		require.Len(t, found, 1)
		require.True(t, found[0].Torn)
	}
}

func TestDamagedSettingsAreSeen(t *testing.T) {
	dir, path := filled(t, 6, 40, natsjs.NoCompression)
	path = filepath.Join(filepath.Dir(path), "../meta.inf")
	settings, err := os.ReadFile(path)
	require.NoError(t, err)
	settings[len(settings)/2] ^= 1
	require.NoError(t, os.WriteFile(path, settings, 0o640))
	found := damageOf(t, dir)
	require.NotEmpty(t, found)
	require.Equal(t, "meta.inf", filepath.Base(found[0].File))
}

func TestAFolderIsTakenOnce(t *testing.T) {
	dir, _ := filled(t, 6, 40, natsjs.NoCompression)
	srv := embedtest.Server(t, embed.Options{DataDir: dir})
	_, err := embed.OpenFolder(dir)
	require.ErrorContains(t, err, "in use by another server")
	srv.Stop()
	f, err := embed.OpenFolder(dir)
	require.NoError(t, err)
	_, err = embed.Start(t.Context(), embed.Options{DataDir: dir})
	require.ErrorContains(t, err, "in use by another server")
	f.Close()

	nowhere := filepath.Join(dir, "nowhere")
	_, err = embed.OpenFolder(nowhere)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoDirExists(t, nowhere)
}
