package textstream_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/uimessage"
)

// tale is a message's records as clients are told of them.
type tale struct {
	records []eventlog.Record // from the message's first one
	ends    []int             // of the root's runs, where responses end
}

func newTale(t *testing.T, all []eventlog.Record, from uint64) (m tale) {
	begin := slices.IndexFunc(all, func(r eventlog.Record) bool { return r.Sequence > from && r.Type == "step_start" })
	require.GreaterOrEqual(t, begin, 0)
	m.records = all[begin:]
	for i, r := range m.records {
		if r.Agent == root && r.Type == "run_ended" {
			m.ends = append(m.ends, i)
		}
	}
	require.NotEmpty(t, m.ends)
	return m
}

// effective leaves out what was struck.
func (m tale) effective(t *testing.T) tale {
	var dead eventlog.Dead
	for _, r := range m.records {
		require.NoError(t, dead.Mark(r))
	}
	return newTale(t, slices.DeleteFunc(slices.Clone(m.records), dead.Covers), 0)
}

// cursor is the last record that the client of the n-th response gets.
func (m tale) cursor(n int) uint64 { return m.records[m.ends[n]].Sequence }

// respond is a response to a client that has the records up to cursor: until
// the n-th end.
func (m tale) respond(t *testing.T, cursor uint64, n int) []uimessage.Frame {
	var frames []uimessage.Frame
	e := newEncoder()
	if cursor == 0 {
		frames = e.Start()
	}
	last := m.records[m.ends[n]]
	frames = append(frames, encoded(e, m.records[:m.ends[n]+1], cursor)...)
	return append(frames, e.End(ending(t, last))...)
}

func ending(t *testing.T, r eventlog.Record) uimessage.Ending {
	f, err := r.Fact()
	require.NoError(t, err)
	ended := f.(*eventlog.RunEnded)
	end := uimessage.Ending{Sequence: r.Sequence, Error: ended.Error}
	switch {
	case ended.Status == eventlog.RunCompleted:
		end.Outcome = uimessage.Completed
	case ended.ErrorCode == "aborted":
		end.Outcome = uimessage.Aborted
	case ended.Status == eventlog.RunFailed:
		end.Outcome = uimessage.Failed
	case ended.Status == eventlog.RunStopped:
		end.Outcome = uimessage.Interrupted
	default:
		end.Outcome = uimessage.Waiting
	}
	return end
}

// whole is all of it in one response.
func (m tale) whole(t *testing.T) []uimessage.Frame { return m.respond(t, 0, len(m.ends)-1) }

// live is a response a run, as a client gets them that is always there.
func (m tale) live(t *testing.T) (responses [][]uimessage.Frame) {
	var cursor uint64
	for n := range m.ends {
		responses = append(responses, m.respond(t, cursor, n))
		cursor = m.cursor(n)
	}
	return responses
}

// received is the client's cursor behind frames.
func received(frames []uimessage.Frame) (cursor uint64) {
	for _, f := range frames {
		cursor = max(cursor, f.Sequence)
	}
	return cursor
}

// cuts calls check for each frame at which a stream of responses can be cut,
// with what a client has in the end that has been cut off there once. What it
// gets of rest follows the cut.
func cuts(t *testing.T, responses [][]uimessage.Frame, rest tale, check func(at int, frames []uimessage.Frame)) {
	at := 0
	for n, response := range responses {
		before := slices.Concat(responses[:n]...)
		for k := range len(response) + 1 {
			frames := slices.Concat(before, response[:k])
			if cursor := received(frames); cursor < rest.cursor(n) {
				again := rest.respond(t, cursor, n)
				requireBalanced(t, again)
				frames = append(frames, again...)
			}
			check(at, slices.Concat(frames, slices.Concat(responses[n+1:]...)))
			at++
		}
	}
}

// A stream can be cut at any frame and resumed: the client has the same in the
// end, whether it listens while the runs go on or gets all of it at once.
func TestCutAnywhere(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			all, from := s.play(t)
			m := newTale(t, all, from).effective(t)
			whole := m.whole(t)
			requireBalanced(t, whole)
			want := assemble(t, whole)
			require.True(t, want.Begun)
			require.False(t, want.InStep)
			require.NotEmpty(t, want.Finish)
			cuts(t, [][]uimessage.Frame{whole}, tale{m.records, m.ends[len(m.ends)-1:]}, func(at int, frames []uimessage.Frame) {
				require.Equal(t, want, assemble(t, frames), "cut at frame %d", at)
			})
			live := m.live(t)
			for _, response := range live {
				requireBalanced(t, response)
			}
			require.Equal(t, want, assemble(t, slices.Concat(live...)), "live")
			cuts(t, live, m, func(at int, frames []uimessage.Frame) {
				require.Equal(t, want, assemble(t, frames), "cut at frame %d of the live stream", at)
			})
		})
	}
}

// A client that has heard what was struck since has everything that survives
// just as one that comes later, wherever it is cut off: nothing of it is mixed
// with what was struck.
func TestCutAroundWhatIsStruck(t *testing.T) {
	struck := 0
	for _, s := range stories() {
		all, from := s.play(t)
		m := newTale(t, all, from)
		survivors := m.effective(t)
		struck += len(m.records) - len(survivors.records)
		want := assemble(t, survivors.whole(t))
		live := m.live(t)
		cuts(t, live, survivors, func(at int, frames []uimessage.Frame) {
			got := assemble(t, frames)
			for _, one := range []struct{ want, got map[string]string }{
				{want.Blocks, got.Blocks}, {want.Calls, got.Calls}, {want.Results, got.Results},
			} {
				for name, text := range one.want {
					require.Equal(t, text, one.got[name], "%s: %s, cut at frame %d", s.name, name, at)
				}
			}
			require.Equal(t, want.Finish, got.Finish)
			require.Equal(t, want.Error, got.Error)
		})
		for _, response := range live {
			requireBalanced(t, response)
		}
	}
	require.NotZero(t, struck)
}

// The stories have in them what they are told for.
func TestStoriesTellOfEverything(t *testing.T) {
	types, parents, reasons := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range stories() {
		all, from := s.play(t)
		for _, f := range slices.Concat(newTale(t, all, from).live(t)...) {
			p := parse(t, f)
			types[p.Type], parents[p.Metadata.ParentToolUseID], reasons[p.FinishReason] = true, true, true
		}
	}
	for _, typ := range partTypes {
		require.True(t, types[typ], typ)
	}
	require.Equal(t, map[string]bool{"": true, "a": true, "b": true, "g": true}, parents)
	require.Equal(t, map[string]bool{"": true, "stop": true, "tool-calls": true, "error": true, "length": true}, reasons)
}
