package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/streams"
)

// scrubbing is a server that counts its scrubs.
type scrubbing struct {
	link.Server
	scrubs int
}

func (s *scrubbing) Scrub(context.Context, string, string, uint64, uint64) (overwritten, left int, err error) {
	s.scrubs++
	return 0, 0, nil
}

// TestAStreamBesideTheLogIsScrubbedAgainForTwoMinutes: they begin with the last scrub.
func TestAStreamBesideTheLogIsScrubbedAgainForTwoMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scrubbing{}
		l := &Store{Set: &streams.Set{Link: &link.Link{Opts: link.Options{Server: s}}}}
		part := Part{Stream: "BESIDE", Subject: "beside.s", UpTo: 9}
		again := func() int {
			s.scrubs = 0
			require.NoError(t, l.ScrubBeside(t.Context()))
			return s.scrubs
		}
		l.rememberBeside(part)
		time.Sleep(90 * time.Second)
		l.rememberBeside(part)
		require.Equal(t, 1, again())
		time.Sleep(90 * time.Second)
		require.Equal(t, 1, again())
		time.Sleep(time.Minute)
		require.Zero(t, again())
	})
}
