package textstream_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/textstream"
	"github.com/helixd/helixd/projector/uimessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	root  = "s"
	child = "s-sub-a" // of the root's call a
)

// of is the base of an agent's chunks.
func of(agent string) eventlog.Base {
	return eventlog.Base{AgentID: agent, AgentType: "writer", Timestamp: 1, Step: 1}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// records are chunks and facts as they would be in a log, one a second.
// Facts are the root's unless they say another session.
func records(t require.TestingT, all ...any) []eventlog.Record {
	var out []eventlog.Record
	for i, one := range all {
		r, ok := one.(eventlog.Record)
		if !ok {
			r.Entry = entry(t, one)
		}
		r.Sequence, r.Time = uint64(i+1), time.Unix(int64(i), 0)
		out = append(out, r)
	}
	return out
}

func entry(t require.TestingT, one any) (e eventlog.Entry) {
	var err error
	switch one := one.(type) {
	case eventlog.Chunk:
		e, err = eventlog.NewChunk(one, eventlog.Labels{Run: "r"})
	case fact.Fact:
		e, err = eventlog.NewFact(root, one, eventlog.Labels{Run: "r"})
	}
	require.NoError(t, err)
	return e
}

// about is a fact about another session than the root's.
func about(t *testing.T, session string, f fact.Fact) eventlog.Record {
	e, err := eventlog.NewFact(session, f, eventlog.Labels{})
	require.NoError(t, err)
	return eventlog.Record{Entry: e}
}

// encoded gives an encoder records and returns the frames for a client that
// shows those with sequence <= shown from a snapshot.
func encoded(e *textstream.Encoder, all []eventlog.Record, shown uint64) []uimessage.Frame {
	var frames []uimessage.Frame
	for _, r := range all {
		of := e.Encode(r)
		if r.Sequence <= shown {
			e.Reopen()
			continue
		}
		frames = append(frames, of...)
	}
	return frames
}

// lines are the frames' JSON.
func lines(frames []uimessage.Frame) []string {
	out := []string{}
	for _, f := range frames {
		out = append(out, string(f))
	}
	return out
}

func newEncoder() *textstream.Encoder { return textstream.New(textstream.Options{Root: root}) }

// told returns the stream of records as lines, and after "END" its end, for a client that
// shows the records up to shown.
func told(t *testing.T, shown uint64, all ...any) string {
	t.Helper()
	e := newEncoder()
	out := lines(encoded(e, records(t, all...), shown))
	end := lines(e.End(uimessage.Ending{Outcome: uimessage.Completed}))
	end = end[:len(end)-1] // but for finish
	if len(end) > 0 {
		out = append(append(out, "END"), end...)
	}
	return strings.Join(out, "\n")
}

func join(lines []string) string { return strings.Join(lines, "\n") }

// script is what a test expects, without its indentation.
func script(text string) string {
	var out []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}
