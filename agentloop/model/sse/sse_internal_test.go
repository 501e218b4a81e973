package sse

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readSSE returns all events of a body and what ended it.
func readSSE(r io.Reader, limit int) ([]Event, error) {
	s := NewReader(r, limit)
	var all []Event
	for {
		e, err := s.Next()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

// pieces is a reader that returns a body in pieces of random sizes.
type pieces struct {
	rest []byte
	rand *rand.Rand
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.rest[:min(len(p.rest), 1+p.rand.IntN(5))])
	p.rest = p.rest[n:]
	return n, nil
}

func TestServerSentEvents(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []Event
	}{
		{"one", "id: 7\nevent: chunk\ndata: {}\n\n", []Event{{"7", "chunk", []byte("{}")}}},
		{"several lines of data", "data: a\ndata:b\ndata:  c\n\n", []Event{{"", "", []byte("a\nb\n c")}}},
		{"carriage returns", "event: x\rdata: a\r\rdata: b\r\r", []Event{{"", "x", []byte("a")}, {"", "", []byte("b")}}},
		{"both", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []Event{{"", "", []byte("a\nb")}, {"", "", []byte("c")}}},
		{"mixed", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []Event{{"", "", []byte("a")}, {"", "", []byte("b")}, {"", "", []byte("c")}}},
		{"byte order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", []Event{{"", "", []byte("a")}}},
		{"comments", ": heartbeat\n\n:\ndata: a\n: b\ndata: c\n\n: end\n\n", []Event{{"", "", []byte("a\nc")}}},
		{"no data", "event: x\nid: 1\n\ndata: a\n\n", []Event{{"", "", []byte("a")}}},
		{"empty data", "event: x\ndata\n\ndata:\ndata:\n\n", []Event{{"", "x", []byte{}}, {"", "", []byte("\n")}}},
		{"an id is of its event only", "id: 1\ndata: a\n\ndata: b\n\n", []Event{{"1", "", []byte("a")}, {"", "", []byte("b")}}},
		{"an id with a zero byte", "id: 1\nid: \x00\ndata: a\n\n", []Event{{"1", "", []byte("a")}}},
		{"unknown fields", "retry: 5\nDATA: x\ndata: a\nfoo\n\n", []Event{{"", "", []byte("a")}}},
		{"cut off in a line", "data: a\n\ndata: b", []Event{{"", "", []byte("a")}}},
		{"cut off before the empty line", "data: a\n\ndata: b\n", []Event{{"", "", []byte("a")}}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readSSE(strings.NewReader(c.body), 100)
			require.Equal(t, io.EOF, err)
			require.Equal(t, c.want, got)
		})
	}
}

// An event is there when its empty line is: a reader that waited for the line
// feed after a carriage return would be one event late.
func TestAnEventIsNotHeldBack(t *testing.T) {
	for _, ending := range []string{"\n", "\r", "\r\n"} {
		r, w := io.Pipe()
		go func() { _, _ = io.WriteString(w, "data: a"+ending+ending) }()
		e, err := NewReader(r, 100).Next()
		require.NoError(t, err)
		require.Equal(t, "a", string(e.Data))
		r.Close()
	}
}

func TestEventsAreBounded(t *testing.T) {
	for name, body := range map[string]string{
		"line":           "data: " + strings.Repeat("x", 100),
		"comment":        ":" + strings.Repeat("x", 101) + "\n",
		"several lines":  strings.Repeat("data: 0123456789\n", 10),
		"many empty":     strings.Repeat("data\n", 102),
		"a long unknown": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readSSE(strings.NewReader(body), 100)
			require.ErrorAs(t, err, new(*TooLongError))
			require.Empty(t, got)
		})
	}
	got, err := readSSE(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 94)+"\n\n", 3)), 100)
	require.Equal(t, io.EOF, err, "what is as long as allowed, however often")
	require.Len(t, got, 3)
}

func FuzzServerSentEvents(f *testing.F) {
	f.Add([]byte("id: 7\nevent: chunk\ndata: {}\n\n"), uint64(1))
	f.Add([]byte("\ufeffdata: a\r\ndata: b\r\r\n: c\n\n"), uint64(2))
	f.Add([]byte("data\rdata:\n\revent\r\n\r\n\x00"), uint64(3))
	f.Add(bytes.Repeat([]byte("data: 0123456789\n"), 10), uint64(4))
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		const limit = 64
		want, wantErr := readSSE(bytes.NewReader(body), limit)
		for _, e := range want {
			require.LessOrEqual(t, len(e.Data), limit)
		}
		got, err := readSSE(&pieces{body, rand.New(rand.NewPCG(seed, 0))}, limit)
		require.Equal(t, want, got, "split anywhere")
		require.Equal(t, wantErr, err)

		plain := bytes.ReplaceAll(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		got, err = readSSE(bytes.NewReader(plain), limit)
		require.Equal(t, want, got, "all kinds of line ends are one")
		require.Equal(t, wantErr, err)
	})
}
