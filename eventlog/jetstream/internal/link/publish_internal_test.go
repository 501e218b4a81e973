package link

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAcksAreRead(t *testing.T) {
	for answer, want := range map[string]pubAck{
		`{"stream":"HELIX_LOG_0","seq":42}`:                            {Sequence: 42},
		`{"stream":"HELIX_LOG_0","domain":"hub","seq":42}`:             {Sequence: 42},
		`{"stream":"HELIX_LOG_12","seq":7,"batch":"x","count":3}`:      {Sequence: 7, Count: 3},
		`{"stream":"HELIX_LOG_0","seq":42,"duplicate":true}`:           {Sequence: 42},
		`{"stream":"HELIX_LOG_0","seq":18446744073709551615}`:          {Sequence: 1<<64 - 1},
		`{"error":{"code":400,"err_code":10071},"stream":"X","seq":0}`: {Error: &APIError{Code: 400, ErrCode: 10071}},
	} {
		got, err := parseAck([]byte(answer))
		require.NoError(t, err, answer)
		require.Equal(t, want, got, answer)
	}
	for _, answer := range []string{``, `{`, `{"stream":"HELIX_LOG_0","seq":}`, `{"stream":"HELIX_LOG_0","seq":-1}`, `{"stream":"HELIX_LOG_0","seq":4x}`} {
		_, err := parseAck([]byte(answer))
		require.Error(t, err, answer)
	}
}
