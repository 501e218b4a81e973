package responses_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
)

// A stream that the server ends says so: to an SDK, one that just ends would be a whole response.
func TestAServerThatCloses(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	answer := g.open("POST", "/responses", object{"model": "brain", "input": "slow", "stream": true})
	g.api.Close()
	all := g.eventsOf(answer)
	close(g.slow)
	last := len(all) - 1
	require.Positive(t, last)
	require.Equal(t, "error", all[last]["type"])
	require.Equal(t, all[last-1]["sequence_number"], all[last]["sequence_number"])
}

// cutLog breaks off the first read of live records.
type cutLog struct {
	eventlog.Log
	cut *atomic.Bool
}

func (l cutLog) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	if l.cut.CompareAndSwap(false, true) {
		return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, io.ErrUnexpectedEOF) }
	}
	return l.Log.Follow(ctx, session, from)
}

// A client that continues after the number of the event that says that the stream broke off
// misses nothing.
func TestAStreamThatBreaksOffContinues(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) { o.Log = cutLog{o.Log, new(atomic.Bool)} })
	all := g.events("POST", "/responses", object{"model": "brain", "input": "slow", "stream": true})
	close(g.slow)
	require.Equal(t, "error", all[len(all)-1]["type"])
	id := all[0]["response"].(object)["id"].(string)
	path := "/responses/" + id + "?stream=true"
	rest := g.events("GET", fmt.Sprintf("%s&starting_after=%v", path, all[len(all)-1]["sequence_number"]), nil)
	require.Equal(t, g.events("GET", path, nil), slices.Concat(all[:len(all)-1], rest))
}
