package jetstream

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// TestARefusedBatchLosesOnlyItsCulprits: sessions that exist, that are new and
// that were expected to be new, in one batch.
func TestARefusedBatchLosesOnlyItsCulprits(t *testing.T) {
	l := openLog(t, nil)
	entries := []eventlog.Entry{
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "a", Agent: "a"}, Payload: []byte(`{}`)},
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "b", Agent: "a"}, Payload: []byte(`{}`)},
	}
	heads := map[string]uint64{}
	for i := range 20 {
		session := fmt.Sprint("s", i)
		var err error
		heads[session], err = l.Append(t.Context(), session, 0, entries)
		require.NoError(t, err)
	}
	wrong := map[string]uint64{"s3": heads["s3"] - 1, "s7": 0, "new-2": 5, "s11": 1000}
	var members []*pendingAppend
	for i := range 30 {
		session := fmt.Sprint("s", i)
		if i >= 20 {
			session = fmt.Sprint("new-", i-20)
		}
		expected, bad := wrong[session]
		if !bad {
			expected = heads[session]
		}
		_, subject, err := l.place(session)
		require.NoError(t, err)
		a, err := l.newAppend(t.Context(), session, subject, expected, entries)
		require.NoError(t, err)
		a.done = make(chan struct{})
		members = append(members, a)
	}
	all := append([]*pendingAppend(nil), members...)
	l.committers[0].commit(members)
	for _, a := range all {
		<-a.done
		if _, bad := wrong[a.session]; bad {
			var conflict *eventlog.ConflictError
			require.ErrorAs(t, a.err, &conflict, a.session)
			require.Equal(t, heads[a.session], conflict.Head)
			continue
		}
		require.NoError(t, a.err, a.session)
		head, err := l.Head(t.Context(), a.session)
		require.NoError(t, err)
		require.Equal(t, a.last, head)
		n := 0
		for _, err := range l.Read(t.Context(), a.session, 0, 0) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 2+2*min(1, int(heads[a.session])), n)
	}
}
