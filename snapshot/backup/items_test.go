package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/snapshot/backup"
)

// itemsOf is something beside the log with these contents.
func itemsOf(name string, contents ...[]byte) backup.Beside {
	return backup.Beside{Name: name, Items: func(context.Context) iter.Seq2[eventlog.CopiedItem, error] {
		return func(yield func(eventlog.CopiedItem, error) bool) {
			for i, c := range contents {
				if !yield(eventlog.CopiedItem{Key: fmt.Sprint("k", i), Data: c}, nil) {
					return
				}
			}
		}
	}}
}

// Items come back in their order, and a program that knows none reads the sessions of the
// same file as before.
func TestItems(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	s := newStore(t, 1)
	s.create("a", 3)
	plain := s.take(backup.Options{})
	noise := make([]byte, 3<<20)
	rnd := rand.NewChaCha8([32]byte{})
	_, err := rnd.Read(noise)
	require.NoError(t, err)
	file := s.take(backup.Options{Beside: []backup.Beside{
		itemsOf("nothing"), itemsOf("files", []byte("one"), noise[:2<<20], nil), itemsOf("days", noise[2<<20:]),
	}})
	var got []string
	_, done, err := backup.Read(t.Context(), bytes.NewReader(file), backup.Visitor{Item: func(of string, item eventlog.CopiedItem) error {
		got = append(got, fmt.Sprint(of, " ", item.Key, " ", len(item.Data)))
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, 4, done.Items)
	require.Equal(t, []string{"files k0 3", "files k1 2097152", "files k2 0", "days k0 1048576"}, got)

	lines := func(file []byte) []byte {
		d, err := zstd.NewReader(bytes.NewReader(file))
		require.NoError(t, err)
		defer d.Close()
		all, err := io.ReadAll(d)
		require.NoError(t, err)
		_, all, _ = bytes.Cut(all, []byte("\n")) // the header has the time
		return all
	}
	require.Equal(t, lines(plain), lines(file))

	// Where it is cut or altered, it is no backup.
	for _, at := range []int{len(plain) - 41, len(plain), len(file) / 2, len(file) - 41, len(file) - 1} {
		_, _, err := backup.Read(t.Context(), bytes.NewReader(file[:at]), backup.Visitor{})
		require.ErrorIs(t, err, backup.ErrDamaged, "cut at %d", at)
		altered := bytes.Clone(file)
		altered[at] ^= 1
		_, _, err = backup.Read(t.Context(), bytes.NewReader(altered), backup.Visitor{})
		require.ErrorIs(t, err, backup.ErrDamaged, "altered at %d", at)
	}
}
