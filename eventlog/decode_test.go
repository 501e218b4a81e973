package eventlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestDecodeIgnoresNewFields(t *testing.T) {
	c, err := eventlog.DecodeChunk([]byte(`{"type":"step_end","newer":[1],"usage":{"inputTokens":1,"outputTokens":2,"newer":3},"agentId":"s","agentType":"a","timestamp":1,"step":1}`))
	require.NoError(t, err)
	require.Equal(t, &eventlog.StepEnd{
		Usage: &eventlog.StepUsage{InputTokens: 1, OutputTokens: 2},
		Base:  eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1, Step: 1},
	}, c)
	f, err := eventlog.DecodeFact([]byte(`{"type":"stream_resumed","newer":null,"sessionId":"s","timestamp":1}`))
	require.NoError(t, err)
	require.Equal(t, &fact.StreamResumed{Base: fact.Base{SessionID: "s", Timestamp: 1}}, f)
}

// What is read was valid when it was written; rules that came later do not
// make old records unreadable.
func TestDecodeTakesWhatIsNoLongerWritten(t *testing.T) {
	c, err := eventlog.DecodeChunk([]byte(`{"type":"step_end","finishReason":"newer","timestamp":-1}`))
	require.NoError(t, err)
	require.Equal(t, &eventlog.StepEnd{FinishReason: new(eventlog.FinishReason("newer")), Base: eventlog.Base{Timestamp: -1}}, c)
}

func TestUnknownTypesKeepTheirBytes(t *testing.T) {
	for _, in := range []string{
		`{"type":"newer"}`,
		" {\t\"type\" : \"newer\",\n \"x\": [1.0, \"\\u003c<\"], \"x\": 2 }\r\n ",
		`{"agentId":7,"type":"newer","timestamp":"soon","sessionId":{}}`,
	} {
		c, err := eventlog.DecodeChunk([]byte(in))
		require.NoError(t, err)
		require.IsType(t, &eventlog.Unknown{}, c)
		require.Equal(t, "newer", c.Type())
		wire, err := eventlog.EncodeChunk(c)
		require.NoError(t, err)
		require.Equal(t, in, string(wire))

		f, err := eventlog.DecodeFact([]byte(in))
		require.NoError(t, err)
		require.IsType(t, &fact.Unknown{}, f)
		wire, err = eventlog.EncodeFact(f)
		require.NoError(t, err)
		require.Equal(t, in, string(wire))
	}
}

func TestUnknownTypesTellTheirBase(t *testing.T) {
	c, err := eventlog.DecodeChunk([]byte(`{"type":"newer","agentId":"s","agentType":"a","timestamp":5,"step":2}`))
	require.NoError(t, err)
	require.Equal(t, eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 5, Step: 2}, eventlog.BaseOf(c))
	f, err := eventlog.DecodeFact([]byte(`{"type":"newer","sessionId":"s","timestamp":5}`))
	require.NoError(t, err)
	require.EqualValues(t, 5, f.At())
}

func TestUnknownOwnsItsBytes(t *testing.T) {
	in := []byte(`{"type":"newer"}`)
	c, err := eventlog.DecodeChunk(in)
	require.NoError(t, err)
	in[2] = 'x'
	require.Equal(t, `{"type":"newer"}`, string(c.(*eventlog.Unknown).Raw))
}

func TestDecodeErrors(t *testing.T) {
	for _, in := range []string{
		``, `null`, `[]`, `{}`, `{"type":""}`, `{"type":1}`, `{"type":"newer"} x`, `{"type":"newer"`,
		`{"type":"text_delta","delta":1}`, `{"type":"stream_failed","error":1}`,
	} {
		_, err := eventlog.DecodeChunk([]byte(in))
		_, ferr := eventlog.DecodeFact([]byte(in))
		require.True(t, err != nil || ferr != nil, in)
	}
}

// TestOneTypeIsRead: of members that all name the type the last one does, however
// it is written and wherever it is.
func TestOneTypeIsRead(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"text_delta","delta":"a"}`:                                   "text_delta",
		`{"type":"text_delta","delta":"\"type\":\"newer\""}`:                  "text_delta",
		`{"type":"text_delta","delta":"a","more":{"type":"newer"}}`:           "text_delta",
		`{"type":"text_delta","agentType":"type","delta":"\u00e4"}`:           "text_delta",
		`{"type":"text_delta","delta":"a","type":"newer"}`:                    "newer",
		`{"type":"text_delta","delta":"a","TYPE":"newer"}`:                    "newer",
		`{"type":"text_delta","delta":"a","\u0074ype":"newer"}`:               "newer",
		`{"delta":"a", "type":"text_delta"}`:                                  "text_delta",
		`{"type":"newer","delta":"a","type":"text_delta"}`:                    "text_delta",
		`{"type":"text\u005fdelta","delta":"a"}`:                              "text_delta",
		`{"type":"text_delta\u0000","delta":"a"}`:                             "text_delta\x00",
		`{"type":"text_delta","delta":"a","a":[{"b":1,"Type":2},"type","x"]}`: "text_delta",
	} {
		c, err := eventlog.DecodeChunk([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, c.Type(), in)
	}
}
