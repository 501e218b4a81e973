package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// payloadBytes is the size of every payload.
const payloadBytes = 221

const indexDigits = 8

// template makes the chunks of one session: text deltas of one size, each
// with its number and its own text, so that a reader can tell which one
// it has and nothing compresses better than text does.
type template struct {
	entry eventlog.Entry
	at    int // of the number
	text  int // bytes of text after it
}

// soup is what texts are cut from.
var soup = func() string {
	random := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 2000)
	for i := range words {
		w := make([]byte, 2+random.IntN(8))
		for j := range w {
			w[j] = byte('a' + random.IntN(26))
		}
		words[i] = string(w)
	}
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(words[random.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
}()

func sessionName(i int) string { return fmt.Sprintf("s-%06d", i) }

func templates(n int) []template {
	t := make([]template, n)
	for i := range t {
		t[i] = newTemplate(sessionName(i))
	}
	return t
}

func newTemplate(session string) template {
	entry := func(text string) eventlog.Entry { return deltaEntry(session, text) }
	mark := strings.Repeat("#", indexDigits)
	text := payloadBytes - len(entry(mark).Payload)
	e := entry(mark + strings.Repeat(" ", text))
	return template{entry: e, at: strings.Index(string(e.Payload), mark), text: text}
}

// deltaEntry makes an entry of a delta, as an agent does. A writer merges only such
// ones.
func deltaEntry(session, text string) eventlog.Entry {
	e, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: text, Base: eventlog.Base{
		AgentID: session, AgentType: "writer", Timestamp: 1_700_000_000_000, Step: 1,
	}}, eventlog.Labels{Run: "run-01JD0000000000000000000000"})
	if err != nil {
		panic(err)
	}
	return e
}

// payload returns chunk n.
func (t template) payload(n int) []byte {
	p := append([]byte(nil), t.entry.Payload...)
	from := n * 7919 % (len(soup) - t.text)
	copy(p[t.at+indexDigits:], soup[from:from+t.text])
	for i := t.at + indexDigits - 1; i >= t.at; i-- {
		p[i] = byte('0' + n%10)
		n /= 10
	}
	return p
}

// delta is the text of chunk n.
func (t template) delta(n int) string {
	return string(t.payload(n)[t.at:][:indexDigits+t.text])
}

func (t template) payloads(from, n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = t.payload(from + i)
	}
	return out
}

// entries are payloads with their envelope.
func (t template) entries(payloads [][]byte) []eventlog.Entry {
	out := make([]eventlog.Entry, len(payloads))
	for i, p := range payloads {
		out[i] = eventlog.Entry{Envelope: t.entry.Envelope, Payload: p}
	}
	return out
}

// indexOf returns the number of one of t's chunks, or -1.
func indexOf[T ~string | ~[]byte](t template, payload T) int {
	if len(payload) != payloadBytes {
		return -1
	}
	n := 0
	for i := t.at; i < t.at+indexDigits; i++ {
		if payload[i] < '0' || payload[i] > '9' {
			return -1
		}
		n = n*10 + int(payload[i]-'0')
	}
	return n
}
