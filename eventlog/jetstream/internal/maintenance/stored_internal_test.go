package maintenance

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestALogOfAnOlderVersionContinues: its records, and those that this version appends
// after them, are one session.
func TestALogOfAnOlderVersionContinues(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	var want []eventlog.Entry
	head := uint64(0)
	for i := range 20 {
		e := storetest.TextEntry(i)
		m := &nats.Msg{Subject: layout.LogSubject("s", 0), Data: e.Payload, Header: nats.Header{
			"Helix-Kind": {"chunk"}, "Helix-Type": {"text_delta"}, "Helix-Agent": {"s"}, "Helix-Writer": {"w"}, "Helix-Ordinal": {fmt.Sprint(i + 1)},
			wire.HeaderExpectedLast: {strconv.FormatUint(head, 10)},
		}}
		var err error
		head, err = l.Publish(t.Context(), []*nats.Msg{m})
		require.NoError(t, err)
		want = append(want, e)
	}
	for i := 20; i < 40; i++ {
		e := storetest.TextEntry(i)
		head = storetest.Appended(t, l, "s", head, []eventlog.Entry{e})
		want = append(want, e)
	}
	storetest.RequireRecords(t, l, "s", want)
	require.NoError(t, l.Seal(t.Context(), "s"))
	sealedTo(t, l, "s", head)
	storetest.RequireRecords(t, l, "s", want)
}
