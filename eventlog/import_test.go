package eventlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
)

// busy is a log in which other sessions write between all appends.
type busy struct {
	eventlog.Log
	t     *testing.T
	noise uint64
	calls [][]eventlog.Entry
}

func newBusy(t *testing.T, before int) *busy {
	b := &busy{Log: memory.New(), t: t}
	for range before {
		b.makeNoise()
	}
	return b
}

func (b *busy) makeNoise() {
	last, err := b.Log.Append(b.t.Context(), "noise", b.noise, []eventlog.Entry{logtest.Text("noise", "n")})
	require.NoError(b.t, err)
	b.noise = last
}

func (b *busy) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	b.makeNoise()
	b.calls = append(b.calls, entries)
	return b.Log.Append(ctx, session, expected, entries)
}

// write appends entries, one by one, and returns the last one's sequence.
func write(t *testing.T, log eventlog.Log, session string, entries ...eventlog.Entry) (last uint64) {
	t.Helper()
	last, err := log.Head(t.Context(), session)
	if !errors.Is(err, eventlog.ErrSessionNotFound) {
		require.NoError(t, err)
	}
	for _, e := range entries {
		last, err = log.Append(t.Context(), session, last, []eventlog.Entry{e})
		require.NoError(t, err)
	}
	return last
}

// exported is a session as `helixd export` writes it and an import reads it.
func exported(t *testing.T, log eventlog.Log, session string) (records []eventlog.Record) {
	t.Helper()
	for _, r := range logtest.Records(t, log, session) {
		line, err := r.MarshalJSON()
		require.NoError(t, err)
		again, err := eventlog.ParseRecord(line)
		require.NoError(t, err, "%s", line)
		records = append(records, again)
	}
	return records
}

func source(records []eventlog.Record) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func factEntry(f fact.Fact) eventlog.Entry { return logtest.Fact("s", f) }

func inRun(text string) eventlog.Entry {
	e := logtest.Text("s", text)
	e.Run = "run-1"
	return e
}

// oddSession is a session with all that a log may hold.
func oddSession(t *testing.T, log eventlog.Log) {
	t.Helper()
	var entries []eventlog.Entry
	for _, s := range chunkSamples {
		e, err := eventlog.NewChunk(s.full, eventlog.Labels{Run: "run/1 é", Call: "call<1>"})
		require.NoError(t, err)
		e.Agent, e.Writer, e.Ordinal = "s", "w", uint64(len(entries)+1)
		entries = append(entries, e)
	}
	for _, s := range factSamples {
		switch s.full.(type) {
		case *fact.Erased, *eventlog.Truncated:
			continue
		}
		entries = append(entries, factEntry(s.full))
	}
	for _, payload := range oddPayloads {
		e := recordOf(payload).Entry
		entries = append(entries, e)
	}
	child := logtest.Text("s-sub-1", "of a child")
	entries = append(entries, child)
	entries[0].Agent = "s"
	write(t, log, "s", entries...)
}

func TestImportReproducesASession(t *testing.T) {
	from, to := newBusy(t, 0), newBusy(t, 100)
	oddSession(t, from)
	dead := write(t, from, "s", inRun("dead"), inRun("dead too"))
	write(t, from, "s", inRun("lives"))
	write(t, from, "s", factEntry(&eventlog.Truncated{
		Reason: eventlog.ResyncCrashRecovery, Ranges: []eventlog.Range{{AgentID: "s", From: dead - 2, To: dead}}, AtSequence: dead, Base: factBase,
	}))
	original := exported(t, from, "s")
	done, err := eventlog.Import(t.Context(), to, "s", source(original), eventlog.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, len(original), done.Records)
	require.Equal(t, len(original), done.Appended)
	require.Len(t, done.SHA256, 64)

	got := logtest.Records(t, to, "s")
	require.Equal(t, got[0].Sequence, done.FirstSequence)
	require.Equal(t, got[len(got)-1].Sequence, done.LastSequence)
	require.Len(t, got, len(original))
	for i, r := range got {
		want := original[i]
		require.NotEqual(t, want.Sequence, r.Sequence, "or it would prove little")
		require.Equal(t, eventlog.Origin{Sequence: want.Sequence, Time: want.Time.UTC()}, r.Origin)
		r.Origin = eventlog.Origin{}
		require.Equal(t, want.Envelope, r.Envelope)
		if r.Type != "truncated" && r.Type != "stream_resync" {
			require.Equal(t, string(want.Payload), string(r.Payload))
		}
	}
	require.Equal(t, effectiveTexts(t, from), effectiveTexts(t, to))
	require.NotContains(t, effectiveTexts(t, to), "dead")

	// A copy of the copy still says where the record was first.
	third := newBusy(t, 7)
	_, err = eventlog.Import(t.Context(), third, "s", source(exported(t, to, "s")), eventlog.ImportOptions{})
	require.NoError(t, err)
	for i, r := range logtest.Records(t, third, "s") {
		require.Equal(t, got[i].Envelope, r.Envelope)
	}
	require.Equal(t, effectiveTexts(t, from), effectiveTexts(t, third))
}

func effectiveTexts(t *testing.T, log eventlog.Log) (texts []string) {
	t.Helper()
	for r, err := range eventlog.Effective(t.Context(), log, "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == "text_delta" {
			c, err := r.Chunk()
			require.NoError(t, err)
			texts = append(texts, c.(*eventlog.TextDelta).Delta)
		}
	}
	return texts
}

// Sequences within markers are those of the log that they are in; of the other
// bytes none changes.
func TestImportTranslatesMarkers(t *testing.T) {
	marker := func(payload string) eventlog.Entry {
		var typ struct{ Type string }
		require.NoError(t, json.Unmarshal([]byte(payload), &typ))
		kind := eventlog.KindFact
		if typ.Type == "stream_resync" {
			kind = eventlog.KindChunk
		}
		return eventlog.Entry{Envelope: eventlog.Envelope{Kind: kind, Type: typ.Type, Agent: "s"}, Payload: []byte(payload)}
	}
	text := func(seq uint64) eventlog.Record {
		r := recordOf(`{}`)
		r.Sequence = seq
		return r
	}
	// Records 10, 11, 20, 30 become 1, 2, 3, 4.
	for payload, want := range map[string]string{
		`{"type":"truncated","ranges":[{"agentId":"s","from":10,"to":20}],"atSequence":30}`:                                                     `{"type":"truncated","ranges":[{"agentId":"s","from":1,"to":3}],"atSequence":4}`,
		`{"type":"truncated","ranges":[{"agentId":"s","from":12,"to":29}],"atSequence":25}`:                                                     `{"type":"truncated","ranges":[{"agentId":"s","from":3,"to":3}],"atSequence":3}`,
		`{"type":"truncated","ranges":[{"agentId":"s","from":1,"to":99}],"atSequence":9}`:                                                       `{"type":"truncated","ranges":[{"agentId":"s","from":1,"to":4}],"atSequence":0}`,
		`{"type":"truncated","ranges":[{"agentId":"s","from":12,"to":19},{"agentId":"t","from":31,"to":50},{"agentId":"u","from":30,"to":30}]}`: `{"type":"truncated","ranges":[{"agentId":"u","from":4,"to":4}]}`,
		`{"type":"truncated","ranges":null,"minSequence":11,"afterSequence":20,"atSequence":30,"new":{"from":10}}`:                              `{"type":"truncated","ranges":null,"minSequence":2,"afterSequence":3,"atSequence":4,"new":{"from":10}}`,
		`{ "type": "truncated" , "x": [ 1 ], "AtSequence": 30, "ranges": [ {"x": {"to": 10}, "From":10, "from":11, "to":20} ] }`:                `{"type":"truncated","x":[ 1 ],"AtSequence":4,"ranges":[{"x":{"to":10},"From":2,"from":2,"to":3}]}`,
		`{"type":"stream_resync","fromSequence":20,"stepCount":30,"agentId":"s"}`:                                                               `{"type":"stream_resync","fromSequence":3,"stepCount":30,"agentId":"s"}`,
		`{"type":"stream_resync",  "stepCount":30}`:                                                                                             `{"type":"stream_resync",  "stepCount":30}`,
		`{"type":"marker_of_later","atSequence":30}`:                                                                                            `{"type":"marker_of_later","atSequence":30}`,
	} {
		log := memory.New()
		r := eventlog.Record{Sequence: 40, Time: recordOf("").Time, Entry: marker(payload)}
		_, err := eventlog.Import(t.Context(), log, "s", source([]eventlog.Record{text(10), text(11), text(20), text(30), r}), eventlog.ImportOptions{})
		require.NoError(t, err, payload)
		got := logtest.Records(t, log, "s")[4]
		require.Equal(t, want, string(got.Payload), payload)
	}
	for _, payload := range []string{
		`{"type":"truncated","atSequence":"x"}`, `{"type":"truncated","atSequence":1.5}`, `{"type":"truncated","ranges":7}`,
		`{"type":"truncated","ranges":[{"from":-1}]}`, `{"type":"stream_resync","fromSequence":[]}`,
	} {
		r := eventlog.Record{Sequence: 40, Time: recordOf("").Time, Entry: marker(payload)}
		_, err := eventlog.Import(t.Context(), memory.New(), "s", source([]eventlog.Record{text(10), r}), eventlog.ImportOptions{})
		require.ErrorContains(t, err, "data can't be read, so its sequences can't be translated", payload)
	}
}

// An import that broke anywhere is made again and continues; what it wrote are
// whole batches.
func TestImportGoesOnAfterABreak(t *testing.T) {
	t.Parallel()
	from := newBusy(t, 0)
	oddSession(t, from)
	for i := range 40 {
		last := write(t, from, "s", inRun(fmt.Sprint("dead ", i)), inRun(fmt.Sprint("alive ", i)))
		write(t, from, "s", factEntry(&eventlog.Truncated{
			Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: last - 3, To: last - 1}}, AtSequence: last, Base: factBase,
		}))
	}
	original := exported(t, from, "s")
	whole := newBusy(t, 3)
	want, err := eventlog.Import(t.Context(), whole, "s", source(original), eventlog.ImportOptions{})
	require.NoError(t, err)
	batches := len(whole.calls)
	require.Greater(t, batches, 40, "each marker waits for the records that it truncates")
	for kill := range batches {
		log := newBusy(t, 3)
		dying := &dyingLog{Log: log, left: kill}
		done, err := eventlog.Import(t.Context(), dying, "s", source(original), eventlog.ImportOptions{})
		require.ErrorIs(t, err, errDied)
		require.Equal(t, done.Records, done.Appended)
		require.Empty(t, done.SHA256)
		if kill > 0 {
			require.Len(t, logtest.Records(t, log, "s"), done.Records)
		}
		again, err := eventlog.Import(t.Context(), log, "s", source(original), eventlog.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, len(original), again.Records)
		require.Equal(t, len(original), done.Appended+again.Appended)
		require.Equal(t, effectiveTexts(t, from), effectiveTexts(t, log))
	}
	// A complete one is only looked at, whatever came after it.
	again, err := eventlog.Import(t.Context(), whole, "s", source(original), eventlog.ImportOptions{})
	require.NoError(t, err)
	want.Appended = 0
	require.Equal(t, want, again)
	write(t, whole, "s", logtest.Text("s", "goes on"))
	again, err = eventlog.Import(t.Context(), whole, "s", source(original), eventlog.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, want, again)
}

var errDied = errors.New("died")

// dyingLog takes so many appends.
type dyingLog struct {
	eventlog.Log
	left int
}

func (l *dyingLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if l.left == 0 {
		return 0, errDied
	}
	l.left--
	return l.Log.Append(ctx, session, expected, entries)
}

// Lost answers and duplicates write nothing twice.
func TestImportUnderFaults(t *testing.T) {
	from := newBusy(t, 0)
	oddSession(t, from)
	original := exported(t, from, "s")
	for _, fault := range []logtest.Fault{logtest.LostAnswer, logtest.LostRequest, logtest.Duplicate} {
		log := &logtest.Faulty{Log: memory.New()}
		log.Next(fault, fault, fault)
		done, err := eventlog.Import(t.Context(), log, "s", source(original), eventlog.ImportOptions{})
		require.NoError(t, err)
		require.Equal(t, len(original), done.Records)
		require.Len(t, logtest.Records(t, log, "s"), len(original))
	}
}

func TestImportRefusesOtherContent(t *testing.T) {
	from := newBusy(t, 0)
	write(t, from, "s", inRun("a"), inRun("b"), inRun("c"))
	original := exported(t, from, "s")
	refused := func(log eventlog.Log, records []eventlog.Record, want string) {
		t.Helper()
		before := logtest.Records(t, log, "s")
		_, err := eventlog.Import(t.Context(), log, "s", source(records), eventlog.ImportOptions{})
		require.ErrorIs(t, err, eventlog.ErrSessionExists)
		require.ErrorContains(t, err, want)
		require.Equal(t, before, logtest.Records(t, log, "s"), "it wrote something")
	}
	refused(from, original, "its record 2 is not the import's 2") // itself: nothing there has an origin
	native := newBusy(t, 0)
	write(t, native, "s", inRun("a"))
	refused(native, original, "its record 2 is not the import's 2")

	half := newBusy(t, 0)
	_, err := eventlog.Import(t.Context(), half, "s", source(original[:2]), eventlog.ImportOptions{})
	require.NoError(t, err)
	write(t, half, "s", inRun("somebody else"))
	refused(half, original, "its record 5 is not the import's 6")
	other := slices.Clone(original)
	other[1].Payload = []byte(strings.Replace(string(other[1].Payload), "b", "x", 1))
	refused(half, other, "its record 3 is not the import's 4")
	other = slices.Clone(original)
	other[0].Writer = "another"
	refused(half, other, "its record 2 is not the import's 2")
}

// Somebody who writes between two batches is not overtaken.
func TestImportMeetsAnotherWriter(t *testing.T) {
	from := newBusy(t, 0)
	last := write(t, from, "s", inRun("a"), inRun("b"))
	write(t, from, "s", factEntry(&eventlog.Truncated{
		Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{{AgentID: "s", From: last, To: last}}, AtSequence: last, Base: factBase,
	}), inRun("c"))
	log := memory.New()
	intruding := func(yield func(eventlog.Record, error) bool) {
		for r := range source(exported(t, from, "s")) {
			if !yield(r, nil) {
				return
			}
			if r.Type == "truncated" {
				write(t, log, "s", inRun("somebody else"))
			}
		}
	}
	done, err := eventlog.Import(t.Context(), log, "s", intruding, eventlog.ImportOptions{})
	var conflict *eventlog.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, 2, done.Records)
	require.Len(t, logtest.Records(t, log, "s"), 3)
}

func TestImportRefusesBadRecords(t *testing.T) {
	from := newBusy(t, 0)
	for range 3 {
		write(t, from, "s", inRun("x"))
	}
	original := exported(t, from, "s")
	errBroken := errors.New("broken")
	for name, tc := range map[string]struct {
		change func([]eventlog.Record)
		want   string
	}{
		"order":       {func(r []eventlog.Record) { r[2].Sequence = r[1].Sequence }, "sequence must rise: 4 comes after 4"},
		"another id":  {func(r []eventlog.Record) { r[0].Agent = "t" }, `agent is "t": a session is imported under its own id only`},
		"no kind":     {func(r []eventlog.Record) { r[2].Kind = "" }, "kind"},
		"no type":     {func(r []eventlog.Record) { r[2].Type = "" }, "type"},
		"wrong type":  {func(r []eventlog.Record) { r[2].Type = "truncated" }, "data is of type"},
		"half origin": {func(r []eventlog.Record) { r[2].Origin.Sequence = 1 }, "origin"},
	} {
		records := slices.Clone(original)
		tc.change(records)
		log := memory.New()
		_, err := eventlog.Import(t.Context(), log, "s", source(records), eventlog.ImportOptions{})
		require.ErrorContains(t, err, tc.want, name)
		require.IsType(t, &eventlog.ValidationError{}, err, name)
		_, err = log.Head(t.Context(), "s")
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound, name)
	}
	log := memory.New()
	_, err := eventlog.Import(t.Context(), log, "s", func(yield func(eventlog.Record, error) bool) {
		_ = yield(original[0], nil) && yield(eventlog.Record{}, errBroken)
	}, eventlog.ImportOptions{})
	require.ErrorIs(t, err, errBroken)
	_, err = eventlog.Import(t.Context(), log, "s", source(nil), eventlog.ImportOptions{})
	require.ErrorContains(t, err, "there are no records")
	_, err = eventlog.Import(t.Context(), log, "", source(original), eventlog.ImportOptions{})
	require.ErrorContains(t, err, "sessionId")
	_, err = log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound, "no part of a batch")
}

// A producer that repeats an append with a key gets sequences without gaps
// between them.
func TestImportKeepsKeyedAppendsTogether(t *testing.T) {
	from := newBusy(t, 0)
	keyed := func(key string, n int) {
		head, err := from.Head(t.Context(), "s")
		if !errors.Is(err, eventlog.ErrSessionNotFound) {
			require.NoError(t, err)
		}
		entries := make([]eventlog.Entry, n)
		for i := range entries {
			entries[i] = logtest.Text("s", fmt.Sprint(key, i))
		}
		_, err = eventlog.AppendOnce(t.Context(), from, "s", eventlog.KeyedWriter(key, "d"), head, entries)
		require.NoError(t, err)
	}
	keyed("a", 700)
	keyed("b", 700)
	keyed("b2", 300)
	write(t, from, "s", inRun("x"))
	keyed("c", 1000)
	keyed("d", 1000)
	to := newBusy(t, 5)
	_, err := eventlog.Import(t.Context(), to, "s", source(exported(t, from, "s")), eventlog.ImportOptions{})
	require.NoError(t, err)
	var sizes []int
	for _, c := range to.calls {
		sizes = append(sizes, len(c))
	}
	require.Equal(t, []int{700, 1000, 1, 1000, 1000}, sizes)
	first := map[string]uint64{}
	for _, r := range logtest.Records(t, to, "s") {
		if key, _, ok := eventlog.ParseKeyedWriter(r.Writer); ok {
			if first[key] == 0 {
				first[key] = r.Sequence
			}
			require.Equal(t, first[key]+r.Ordinal-1, r.Sequence)
		}
	}
}

// Neither many records nor large ones are held at once.
func TestImportBatchesAreBounded(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	large := logtest.Text("s", strings.Repeat("x", 3<<20))
	var records []eventlog.Record
	for i := range 2500 {
		e := logtest.Text("s", "x")
		if i < 10 {
			e = large
		}
		records = append(records, eventlog.Record{Sequence: uint64(i) + 1, Time: recordOf("").Time, Entry: e})
	}
	log := newBusy(t, 0)
	_, err := eventlog.Import(t.Context(), log, "s", source(records), eventlog.ImportOptions{})
	require.NoError(t, err)
	var sizes []int
	for _, c := range log.calls {
		sizes = append(sizes, len(c))
	}
	require.Equal(t, []int{2, 2, 2, 2, 1000, 1000, 492}, sizes)

	// A forged append with a key has no end.
	for i := range records {
		records[i].Writer, records[i].Ordinal = eventlog.KeyedWriter("k", "d"), uint64(i)+1
		if i < 40 {
			records[i].Entry.Payload = large.Payload
		}
	}
	log = newBusy(t, 0)
	_, err = eventlog.Import(t.Context(), log, "s", source(records), eventlog.ImportOptions{})
	require.NoError(t, err)
	sizes = nil
	for _, c := range log.calls {
		sizes = append(sizes, len(c))
	}
	require.Equal(t, []int{21, 1000, 1000, 479}, sizes)
}

// What a NATS client wrote, past helixd, is a record without an envelope. It
// goes where the session goes.
func TestImportTakesForeignMessages(t *testing.T) {
	from, to := memory.New(), newBusy(t, 3)
	foreign := eventlog.Entry{Payload: []byte("hello")}
	write(t, from, "s", foreign, logtest.Text("s", "a"), foreign)
	_, err := eventlog.Import(t.Context(), to, "s", source(exported(t, from, "s")), eventlog.ImportOptions{})
	require.NoError(t, err)
	got := logtest.Records(t, to, "s")
	require.Len(t, got, 3)
	for i, r := range logtest.Records(t, from, "s") {
		require.Equal(t, r.Sequence, got[i].Origin.Sequence)
		r.Origin = got[i].Origin
		require.Equal(t, r.Entry, got[i].Entry)
	}
	var invalid *eventlog.ValidationError
	_, err = eventlog.Import(t.Context(), memory.New(), "t", source(exported(t, from, "s")), eventlog.ImportOptions{})
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "agent", invalid.Field, "the session is another one")
}
