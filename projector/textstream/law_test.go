package textstream_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/uimessage"
)

// tale is a message's records as clients receive them.
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

// effective leaves out what was truncated.
func (m tale) effective(t *testing.T) tale {
	var dead eventlog.Truncations
	for _, r := range m.records {
		require.NoError(t, dead.Add(r))
	}
	return newTale(t, slices.DeleteFunc(slices.Clone(m.records), dead.Covers), 0)
}

// groups are the frames of the records up to the n-th end, by record. The last
// ones are also the end's.
func (m tale) groups(t *testing.T, n int) (all [][]uimessage.Frame) {
	e := newEncoder()
	for _, r := range m.records[:m.ends[n]+1] {
		all = append(all, e.Encode(r))
	}
	all[m.ends[n]] = append(all[m.ends[n]], e.End(ending(t, m.records[m.ends[n]]))...)
	return all
}

// rest is what a client lacks of the n-th response that has the records before
// a sequence, and some frames of that record.
func (m tale) rest(t *testing.T, n int, sequence uint64, frames int) (rest []uimessage.Frame) {
	for i, of := range m.groups(t, n) {
		switch s := m.records[i].Sequence; {
		case s == sequence:
			rest = append(rest, of[min(frames, len(of)):]...)
		case s > sequence:
			rest = append(rest, of...)
		}
	}
	return rest
}

func ending(t *testing.T, r eventlog.Record) uimessage.Ending {
	f, err := r.Fact()
	require.NoError(t, err)
	ended := f.(*fact.RunEnded)
	end := uimessage.Ending{Error: ended.Error}
	switch {
	case ended.Status == fact.RunCompleted:
		end.Outcome = uimessage.Completed
	case ended.ErrorCode == "aborted":
		end.Outcome = uimessage.Aborted
	case ended.Status == fact.RunFailed:
		end.Outcome = uimessage.Failed
	case ended.Status == fact.RunStopped:
		end.Outcome = uimessage.Interrupted
	default:
		end.Outcome = uimessage.Waiting
	}
	return end
}

// whole is all of it in one response.
func (m tale) whole(t *testing.T) []uimessage.Frame { return m.respond(t, len(m.ends)-1) }

// respond is the n-th response to a client that has those before, or, if there
// is none, nothing.
func (m tale) respond(t *testing.T, n int) []uimessage.Frame {
	if n == 0 || len(m.ends) == 1 {
		return append([]uimessage.Frame{newEncoder().Start()}, m.rest(t, n, 0, 0)...)
	}
	return m.rest(t, n, m.records[m.ends[n-1]].Sequence+1, 0)
}

// live is a response a run, as a client gets them that is always there.
func (m tale) live(t *testing.T) (responses [][]uimessage.Frame) {
	for n := range m.ends {
		responses = append(responses, m.respond(t, n))
	}
	return responses
}

// cuts calls check for each frame at which a stream of responses can be cut,
// with what a client has in the end that has been cut off there once. What it
// lacks is taken from survivors.
func (m tale) cuts(t *testing.T, survivors tale, check func(at string, frames []uimessage.Frame)) {
	live := m.live(t)
	had := []uimessage.Frame{newEncoder().Start()}
	first := 0
	for n := range m.ends {
		of := m.groups(t, n)
		for i := first; i <= m.ends[n]; i++ {
			for k := range len(of[i]) + 1 {
				frames := slices.Concat(had, of[i][:k], survivors.rest(t, n, m.records[i].Sequence, k))
				check(fmt.Sprintf("run %d, record %d, frame %d", n, i, k), slices.Concat(frames, slices.Concat(live[n+1:]...)))
			}
			had = append(had, of[i]...)
		}
		first = m.ends[n] + 1
	}
}

// A stream can be cut at any frame and resumed: the client has the same in the
// end, whether it listens while the runs continue or gets all of it at once.
func TestCutAnywhere(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.name, func(t *testing.T) {
			all, from := s.play(t)
			m := newTale(t, all, from).effective(t)
			one := tale{m.records, m.ends[len(m.ends)-1:]}
			whole := one.whole(t)
			requireBalanced(t, whole)
			want := assemble(t, whole)
			require.True(t, want.Begun)
			require.False(t, want.InStep)
			require.NotEmpty(t, want.Finish)
			one.cuts(t, one, func(at string, frames []uimessage.Frame) { require.Equal(t, whole, frames, "cut at %s", at) })
			live := m.live(t)
			for _, response := range live {
				requireBalanced(t, response)
			}
			require.Equal(t, want, assemble(t, slices.Concat(live...)), "live")
			m.cuts(t, m, func(at string, frames []uimessage.Frame) {
				require.Equal(t, slices.Concat(live...), frames, "cut at %s of the live stream", at)
			})
		})
	}
}

// A client that has frames of what was truncated since has everything that
// survives just as one that comes later, wherever it is cut off: nothing of it
// is mixed with what was truncated.
func TestCutAroundWhatIsTruncated(t *testing.T) {
	truncated := 0
	for _, s := range stories() {
		all, from := s.play(t)
		m := newTale(t, all, from)
		survivors := m.effective(t)
		truncated += len(m.records) - len(survivors.records)
		want := assemble(t, slices.Concat(survivors.live(t)...))
		m.cuts(t, survivors, func(at string, frames []uimessage.Frame) {
			got := assemble(t, frames)
			for _, one := range []struct{ want, got map[string]string }{
				{want.Blocks, got.Blocks}, {want.Calls, got.Calls}, {want.Results, got.Results},
			} {
				for name, text := range one.want {
					require.Equal(t, text, one.got[name], "%s: %s, cut at %s", s.name, name, at)
				}
			}
			require.Equal(t, want.Finish, got.Finish)
			require.Equal(t, want.Error, got.Error)
		})
		for _, response := range m.live(t) {
			requireBalanced(t, response)
		}
	}
	require.NotZero(t, truncated)
}

// The stories cover everything that they are for.
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
