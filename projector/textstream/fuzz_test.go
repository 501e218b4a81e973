package textstream_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/uimessage"
)

// fuzzedLog reads a log of lines: a character that says whose record it is and
// whether it is a fact, and the payload.
func fuzzedLog(lines []byte) (all []eventlog.Record) {
	for line := range bytes.Lines(lines) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if len(line) == 0 {
			continue
		}
		r := eventlog.Record{Sequence: uint64(len(all) + 1)}
		r.Kind, r.Agent, r.Payload = eventlog.KindChunk, []string{root, child, "", "\xff"}[line[0]>>1&3], line[1:]
		if line[0]&1 == 1 {
			r.Kind = eventlog.KindFact
		}
		if _, typ, ok := strings.Cut(string(r.Payload), `"type":"`); ok {
			r.Type, _, _ = strings.Cut(typ, `"`)
		}
		all = append(all, r)
	}
	return all
}

// Whatever is in a log, and wherever a client was cut off, the frames are
// parts that there are, in an order that a client can read.
func FuzzEncode(f *testing.F) {
	for _, c := range eventlog.ChunkTypes() {
		f.Add([]byte(`0{"type":"`+c+`","toolCallId":"c","toolName":"t","delta":"d"}`), uint64(0))
	}
	f.Add([]byte(strings.Join([]string{
		`0{"type":"step_start"}`, `1{"type":"session_created","child":{"callId":"a"}}`, `0{"type":"text_delta","delta":"<\n"}`,
		`2{"type":"thinking","content":"a"}`, `0{"type":"tool_arg_stream_start","toolCallId":"c","toolName":"t"}`,
		`2{"type":"thinking","content":"b","isComplete":true}`, `0{"type":"tool_arg_stream_delta","toolCallId":"c","delta":"{"}`,
		`1{"type":"model_turn","parts":[{"toolCall":{"toolCallId":"c","arguments":"{"}}],"usage":{"prompt":9223372036854775807}}`,
		`1{"type":"truncated","ranges":[{"agentId":"s","from":3,"to":5},{"agentId":"s-sub-a","from":4,"to":6}]}`,
		`1{"type":"call_suspended","toolCallId":"d","childSessionId":"s-sub-a"}`, `0{"type":"tool_input_error","toolCallId":"c"}`,
		`1{"type":"run_ended"}`, `1{"type":"run_requested"}`, `0{"type":"step_end","finishReason":"odd"}`,
		`0{"type":"error","error":"no"}`, `4{"type":"tool_end"}`, `6{"type":"newest"}`, `0{`,
	}, "\n")), uint64(4))
	f.Fuzz(func(t *testing.T, log []byte, shown uint64) {
		e := newEncoder()
		frames := append([]uimessage.Frame{e.Start()}, encoded(e, fuzzedLog(log), shown)...)
		frames = append(frames, e.End(uimessage.Ending{Outcome: uimessage.Completed})...)
		open := map[string]int{}
		for i, frame := range frames {
			p := parse(t, frame)
			dash := strings.LastIndex(p.Type, "-")
			kind, phase := p.Type[:dash+1], p.Type[dash+1:]
			block := kind + p.ID
			switch {
			case p.ID == "" && !strings.HasPrefix(p.Type, "tool-input-"):
				require.Equal(t, i == len(frames)-1, p.Type == "finish")
			case phase == "start":
				open[block]++
			case phase == "delta":
				require.Positive(t, open[block], "%s", frame)
			default:
				require.Positive(t, open[block], "%s", frame)
				open[block]--
			}
		}
		for block, n := range open {
			require.Zero(t, n, block)
		}
	})
}
