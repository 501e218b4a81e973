package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func TestStreamStatus(t *testing.T) {
	factOf := func(typ string) eventlog.Envelope { return eventlog.Envelope{Kind: eventlog.KindFact, Type: typ} }
	chunk := func(typ string) eventlog.Envelope { return eventlog.Envelope{Kind: eventlog.KindChunk, Type: typ} }
	const (
		active = eventlog.StreamActive
		paused = eventlog.StreamWaiting
		ended  = eventlog.StreamCompleted
		failed = eventlog.StreamTerminated
		same   = eventlog.StreamStatus("same")
	)
	// What follows on active, paused, ended and failed; "-" is refused.
	for _, tc := range []struct {
		record eventlog.Envelope
		want   [4]string
	}{
		{factOf("stream_paused"), [4]string{"paused", "paused", "-", "-"}},
		{factOf("stream_resumed"), [4]string{"active", "active", "-", "-"}},
		{factOf("stream_end"), [4]string{"ended", "ended", "-", "-"}},
		{factOf("stream_failed"), [4]string{"failed", "failed", "-", "-"}},
		{factOf("run_requested"), [4]string{"active", "active", "active", "active"}},
		{factOf("user_message"), [4]string{"active", "paused", "ended", "failed"}},
		{factOf("run_claimed"), [4]string{"active", "paused", "ended", "failed"}},
		{factOf("newer"), [4]string{"active", "paused", "ended", "failed"}},
		{chunk("text_delta"), [4]string{"active", "paused", "-", "-"}},
		{chunk("newer"), [4]string{"active", "paused", "-", "-"}},
		{chunk("run_requested"), [4]string{"active", "paused", "-", "-"}},
	} {
		for i, s := range []eventlog.StreamStatus{active, paused, ended, failed} {
			name := string(tc.record.Kind) + " " + tc.record.Type + " on " + string(s)
			require.Equal(t, tc.want[i] == "-", s.Refuses(tc.record), name)
			want := eventlog.StreamStatus(tc.want[i])
			if want == "-" {
				want = s // one that is in the log all the same changes nothing
			}
			require.Equal(t, want, s.After(tc.record), name)
		}
	}
	require.Equal(t, active, eventlog.StreamStatus("").After(chunk("text_delta")), "a stream begins active")
	for s, want := range map[eventlog.StreamStatus]bool{"": false, active: false, paused: false, ended: true, failed: true, same: false} {
		require.Equal(t, want, s.Terminal(), "%q", s)
	}
}
