package jetstream

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/doctor"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// TestExamineStorage: the bytes of a million tokens come from the stored records, or else
// from measured values.
func TestExamineStorage(t *testing.T) {
	t.Parallel()
	nc := storetest.Connect(t)
	l, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	require.Equal(t, "a million tokens, each a record: 305.2 MiB in the log (320 B a record), and 13.35 MiB in sealed segments (14 B a record)",
		storageOf(t, nc).Found)

	s := speak(wordsOf(t, "../../LICENSE"), 7, false) // a text that does not change
	head := uint64(0)
	for range 2 * wire.SegmentRecords {
		head = storetest.Appended(t, l, s.session, head, []eventlog.Entry{s.next(t)})
	}
	require.NoError(t, l.Seal(t.Context(), s.session))
	found := storageOf(t, nc)
	require.Equal(t, doctor.Healthy, found.Status)
	require.Regexp(t, `in the log here \(3[0-3]\d B a record\), and .* MiB in sealed segments here \(1[0-5] B a record\)`, found.Found)
}

// storageOf is the doctor's check of what is stored.
func storageOf(t *testing.T, nc *nats.Conn) (storage doctor.Check) {
	t.Helper()
	require.NoError(t, doctor.Examine(t.Context(), nc, nil, func(c doctor.Check) {
		if c.ID == doctor.CheckStorage {
			require.Empty(t, storage.ID)
			storage = c
		}
	}))
	return storage
}
