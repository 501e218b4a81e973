package embed_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
)

// TestAWriteThatAKillCutOff: the beginning of a record at a stream's end, whose message was not
// acknowledged, is cut off without a report of damage. What may be damage is reported.
func TestAWriteThatAKillCutOff(t *testing.T) {
	t.Parallel()
	const size = 1000
	for name, c := range map[string]struct {
		change  func(raw []byte) []byte // of the last block
		many    bool                    // messages of more than one block
		damaged bool
	}{
		"in the last message":    {change: func(raw []byte) []byte { return raw[:len(raw)-size/2] }},
		"in its header":          {change: func(raw []byte) []byte { return raw[:len(raw)-size-25] }},
		"a few bytes":            {change: func(raw []byte) []byte { return append(raw, raw[:7]...) }},
		"the last byte":          {change: func(raw []byte) []byte { return raw[:len(raw)-1] }},
		"the first of a block":   {change: func(raw []byte) []byte { return raw[:size] }, many: true},
		"a changed last message": {change: func(raw []byte) []byte { raw[len(raw)-size/2] ^= 1; return raw }, damaged: true},
		"a changed message as well": {damaged: true, change: func(raw []byte) []byte {
			raw[size] ^= 1
			return raw[:len(raw)-size/2]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			srv := embedtest.Server(t, embed.Options{DataDir: dir, SyncInterval: time.Minute})
			js, _ := streamS(t, srv, natsjs.NoCompression)
			if c.many {
				fill(t, js, 1200, 8*size, "s.kept")
			} else {
				fill(t, js, 5, size, "s.kept")
			}
			killed := t.TempDir()
			require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
			srv.Stop()
			all := glob(t, killed, "*.blk")
			require.Equal(t, c.many, len(all) > 1)
			path := all[len(all)-1]
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			changed := c.change(slices.Clone(raw))
			require.NoError(t, os.WriteFile(path, changed, 0o600))
			require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)))

			srv = embedtest.Server(t, embed.Options{DataDir: killed})
			js, s := streamS(t, srv, natsjs.NoCompression)
			info, err := s.Info(t.Context(), natsjs.WithDeletedDetails(true))
			require.NoError(t, err)
			state := info.State
			require.Equal(t, c.damaged, state.Lost != nil, "%+v", state.Lost)
			_, err = js.Publish(t.Context(), "s.kept", []byte("next"))
			require.NoError(t, err)
			if c.damaged {
				return
			}
			for seq := uint64(1); seq <= state.LastSeq+1; seq++ {
				_, err := s.GetMsg(t.Context(), seq)
				require.NoError(t, err, fmt.Sprint(seq))
			}
			srv.Stop()
			require.Empty(t, damageOf(t, killed))
		})
	}
}
