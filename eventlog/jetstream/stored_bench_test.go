package jetstream

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// docWords are the words of the documentation, each with the space before it, as a model
// emits them: the tokens of the figures in docs/operations/operations.md.
func docWords(t testing.TB) (words []string) {
	files, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return wordsOf(t, files...)
}

func wordsOf(t testing.TB, files ...string) (words []string) {
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		for line := range strings.Lines(string(b)) {
			if strings.ContainsAny(line[:1], "|`$<") {
				continue
			}
			for i, w := range strings.Fields(line) {
				if i > 0 {
					w = " " + w
				}
				words = append(words, w)
			}
		}
	}
	return words
}

// spoken is the records of an agent's session, one after the other, and how many bytes of
// text they have: words, arguments and results.
type spoken struct {
	session, run, writer string
	words                []string
	random               *rand.Rand
	at                   time.Time
	step                 int
	tools                bool

	pending []eventlog.Chunk
	ordinal uint64
	text    int
}

func speak(words []string, seed uint64, tools bool) *spoken {
	random := rand.New(rand.NewPCG(seed, 1))
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	id := func() string {
		var id ulid.ULID
		_ = id.SetTime(ulid.Timestamp(at))
		for i := 6; i < len(id); i++ {
			id[i] = byte(random.IntN(256))
		}
		return id.String()
	}
	return &spoken{session: id(), run: "run-" + id(), writer: id(), words: words[random.IntN(len(words)/2):], random: random, at: at, step: 1, tools: tools}
}

// next returns the next record: a word, 15 to 25 ms after the one before. With tools, one
// in 80 words is followed by the call of a tool.
func (s *spoken) next(t testing.TB) eventlog.Entry {
	s.at = s.at.Add(15*time.Millisecond + time.Duration(s.random.IntN(10_000_000)))
	base := eventlog.Base{AgentID: s.session, AgentType: "writer", Timestamp: s.at.UnixMilli(), Step: s.step}
	if len(s.pending) == 0 && s.tools && s.random.IntN(80) == 0 {
		s.call(base)
	}
	labels := eventlog.Labels{Run: s.run}
	var c eventlog.Chunk
	if len(s.pending) > 0 {
		c, s.pending = s.pending[0], s.pending[1:]
		if c, ok := c.(*eventlog.ToolEnd); ok {
			labels.Call = c.ToolCallID
			s.text += len(c.Result)
		}
	} else {
		c = &eventlog.TextDelta{Delta: s.word(), Base: base}
	}
	e, err := eventlog.NewChunk(c, labels)
	require.NoError(t, err)
	s.ordinal++
	e.Writer, e.Ordinal = s.writer, s.ordinal
	return e
}

func (s *spoken) word() string {
	w := s.words[0]
	s.words = s.words[1:]
	s.text += len(w)
	return w
}

func (s *spoken) call(base eventlog.Base) {
	id := fmt.Sprintf("call_%024x", s.random.Uint64())
	base.Timestamp++
	s.pending = append(s.pending, &eventlog.ToolArgStreamStart{ToolCallID: id, ToolName: "search", Base: base})
	arguments := map[string]any{"limit": s.random.IntN(50), "query": ""}
	for range 5 {
		w := s.word()
		arguments["query"] = arguments["query"].(string) + w
		s.pending = append(s.pending, &eventlog.ToolArgStreamDelta{ToolCallID: id, Delta: w, Base: base})
	}
	raw, _ := json.Marshal(arguments)
	var found []map[string]any
	for range 1 + s.random.IntN(5) {
		title := strings.Join(s.words[:20], "")
		s.words = s.words[20:]
		found = append(found, map[string]any{"title": title, "score": s.random.Float64(), "id": s.random.IntN(1e6)})
	}
	result, _ := json.Marshal(found)
	s.pending = append(s.pending,
		&eventlog.ToolArgStreamEnd{ToolCallID: id, Base: base},
		&eventlog.ToolStart{ToolCallID: id, ToolName: "search", Arguments: raw, Base: base},
		&eventlog.ToolEnd{ToolCallID: id, ToolName: "search", Result: result, Base: base})
	s.step++
}

// segments are the sealed segments of that many records, which are in the log among
// others'.
func (s *spoken) segments(t testing.TB, records, each int) (all []*wire.Segment) {
	var last *wire.Segment
	at, sequence := uint64(0), uint64(1000)
	for done := 0; done < records; done += each {
		next := last.Next(at)
		for range min(each, records-done) {
			e := s.next(t)
			previous := sequence
			if done == 0 && len(next.Records) == 0 {
				previous = 0
			}
			sequence += 1 + uint64(s.random.IntN(20))
			next.Records = append(next.Records, wire.Stored{
				Record: eventlog.Record{Sequence: sequence, Time: s.at.Add(time.Millisecond), Entry: e}, Previous: previous, Linked: true,
			})
		}
		at += 1 + uint64(s.random.IntN(10))
		all, last = append(all, next), next
	}
	return all
}

var storedCases = []struct {
	name          string
	tools         bool
	records, each int
	most          float64 // bytes of segments for a byte of text
}{
	{"words", false, 20_000, wire.SegmentRecords, 2.5},
	{"long", false, 60_000, wire.SegmentRecords, 2.5},
	{"short", false, 100, 100, 3.5},
	{"tools", true, 20_000, wire.SegmentRecords, 2.5},
}

// TestSealedSegmentsAreSmall: a byte of text that a model emits word by word takes at
// most 2.5 bytes in sealed segments, everything that is stored with it included.
func TestSealedSegmentsAreSmall(t *testing.T) {
	words := docWords(t)
	for len(words) < 150_000 {
		words = append(words, words...)
	}
	for _, c := range storedCases {
		s := speak(words, 7, c.tools)
		size := 0
		for _, segment := range s.segments(t, c.records, c.each) {
			b, err := segment.Pack()
			require.NoError(t, err)
			got, err := wire.Unpack(b)
			require.NoError(t, err)
			for i := range segment.Records {
				segment.Records[i].Entry = segment.Records[i].Encoded()
			}
			require.Equal(t, segment, got)
			size += len(b) + len(layout.SegmentSubject(s.session, 0)) + wire.SegmentHeaders + wire.MessageOverhead
		}
		ratio := float64(size) / float64(s.text)
		t.Logf("%s: %.2f bytes for a byte of text, %.1f a record, of which %.1f are text", c.name, ratio,
			float64(size)/float64(c.records), float64(s.text)/float64(c.records))
		require.LessOrEqual(t, ratio, c.most, c.name)
	}
}

// BenchmarkPack and BenchmarkUnpack measure a segment of 200 words.
func BenchmarkPack(b *testing.B) {
	s := speak(docWords(b), 7, false).segments(b, 4000, wire.SegmentRecords)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := s[i%len(s)].Pack(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*wire.SegmentRecords), "ns/record")
}

func BenchmarkUnpack(b *testing.B) {
	s := speak(docWords(b), 7, false).segments(b, 4000, wire.SegmentRecords)
	var packed [][]byte
	for _, one := range s {
		p, err := one.Pack()
		require.NoError(b, err)
		packed = append(packed, p)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := wire.Unpack(packed[i%len(packed)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*wire.SegmentRecords), "ns/record")
}

// BenchmarkStored measures how many bytes the streams have for each byte of text and for
// a million words, as counted by the server. One operation is ten sessions of 2,000 words
// that grow concurrently.
func BenchmarkStored(b *testing.B) {
	words := docWords(b)
	for _, tools := range []bool{false, true} {
		name := map[bool]string{false: "words", true: "tools"}[tools]
		b.Run(name, func(b *testing.B) {
			for range b.N {
				srv, err := embed.Start(b.Context(), embed.Options{DataDir: b.TempDir(), SyncInterval: time.Second, GroupSync: true})
				require.NoError(b, err)
				nc, err := srv.Connect()
				require.NoError(b, err)
				l, err := Open(b.Context(), nc, &Options{Durability: "interval=1s", Server: srv})
				require.NoError(b, err)
				js, err := natsjs.New(nc)
				require.NoError(b, err)
				var all []*spoken
				heads := map[string]uint64{}
				for i := range 10 {
					all = append(all, speak(words, uint64(i), tools))
				}
				const records = 2000
				for range records {
					for _, s := range all {
						heads[s.session], err = l.Append(b.Context(), s.session, heads[s.session], []eventlog.Entry{s.next(b)})
						require.NoError(b, err)
					}
				}
				text := 0
				for _, s := range all {
					require.NoError(b, l.Seal(b.Context(), s.session))
					text += s.text
				}
				for _, stream := range []string{layout.LogStream(0), layout.SegmentStream(0)} {
					info, err := js.Stream(b.Context(), stream)
					require.NoError(b, err)
					size := float64(info.CachedInfo().State.Bytes)
					unit := map[bool]string{true: "log", false: "segments"}[stream == layout.LogStream(0)]
					b.ReportMetric(size/float64(text), unit+"-B/text-B")
					b.ReportMetric(size/float64(records*len(all)), unit+"-B/record")
				}
				b.ReportMetric(float64(text)/float64(records*len(all)), "text-B/record")
				l.Close()
				nc.Close()
				srv.Stop()
			}
		})
	}
}

// TestALogRecordIsSmall reports how many bytes a word of a model takes in the log besides
// its payload: JetStream's own share, and the envelope's.
func TestALogRecordIsSmall(t *testing.T) {
	s := speak(docWords(t), 7, false)
	var all, envelope int
	const records = 2000
	for i := range records {
		subject := layout.LogSubject(s.session, 0)
		m := wire.NewMessage(subject, wire.Stored{Record: eventlog.Record{Entry: s.next(t)}, Linked: true}, true)
		m.Header[wire.HeaderExpectedLast] = []string{strconv.Itoa(100_000 + i)}
		var b strings.Builder
		require.NoError(t, http.Header(m.Header).Write(&b))
		all += wire.MessageOverhead + len(subject) + len("NATS/1.0\r\n") + b.Len() + len("\r\n") + len(m.Data)
		envelope += len(wire.HeaderEnvelope) + len(": \r\n") + len(m.Header[wire.HeaderEnvelope][0])
	}
	t.Logf("%.1f bytes a record, %.1f for a byte of text; %.1f of them are the envelope", float64(all)/records, float64(all)/float64(s.text), float64(envelope)/records)
	require.LessOrEqual(t, envelope/records, 57)
	require.LessOrEqual(t, float64(all)/float64(s.text), 40.0)
}
