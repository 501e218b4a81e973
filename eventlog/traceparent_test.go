package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestTraceParentOfARun(t *testing.T) {
	request := func(parent string) error {
		_, err := eventlog.NewFact("s", &fact.RunRequested{
			RunID: "r", Mode: fact.ModeStart, TraceParent: parent, Base: factBase,
		}, eventlog.Labels{})
		return err
	}
	require.NoError(t, request("00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01"))
	for _, bad := range []string{"x", "00-0102030405060708090A0B0C0D0E0F10-0102030405060708-01", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01\n"} {
		require.ErrorContains(t, request(bad), "traceParent", bad)
	}
}
