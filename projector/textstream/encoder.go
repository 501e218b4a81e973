package textstream

import (
	"maps"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/uimessage"
)

// Options say what an [Encoder] encodes.
type Options struct {
	Root string // id of the tree's root session
	// Earlier are the calls of earlier messages, by id: what comes of them
	// belongs there.
	Earlier map[string]bool
	// Cost returns what tokens of a model cost, in USD, and false if that is
	// not known; nil: it never is.
	Cost func(model string, tokens fact.TokenUsage) (usd float64, known bool)
}

// Encoder encodes one response: a message's stream from a cut, or from its
// beginning, to its end. It is for one goroutine.
type Encoder struct {
	root    string
	earlier map[string]bool
	price   func(string, fact.TokenUsage) (float64, bool)
	agents  map[string]*agent
	// parents are the calls that sub-agents' sessions belong to, by session.
	parents map[string]string
	step    *eventlog.Record // of the start-step that has no finish-step yet; nil: there is none
	failed  bool             // there is an error

	usage       usage
	reason      eventlog.FinishReason // of the root's last step
	first, last time.Time             // of the root's chunks

	at  eventlog.Record   // without its payload
	out []uimessage.Frame // of the record
}

// New returns an encoder that has not been given any record.
func New(o Options) *Encoder {
	return &Encoder{root: o.Root, earlier: o.Earlier, price: o.Cost, agents: map[string]*agent{}, parents: map[string]string{}}
}

// Start returns what begins a message, for a client that has nothing of it.
func (e *Encoder) Start() uimessage.Frame { return encode(bare{Type: "start"}) }

// Reopen begins open blocks again before they continue. It is for a client
// that has the message so far from a snapshot.
func (e *Encoder) Reopen() {
	for _, a := range e.agents {
		for _, b := range a.open {
			b.here = false
		}
	}
}

// Encode returns the frames of a message's next record, often none. Records
// that can't be read are left out.
func (e *Encoder) Encode(r eventlog.Record) []uimessage.Frame {
	e.out, e.at = nil, eventlog.Record{Sequence: r.Sequence, Entry: eventlog.Entry{Envelope: r.Envelope}}
	e.note(r)
	switch r.Kind {
	case eventlog.KindChunk:
		if c, err := r.Chunk(); err == nil {
			e.chunk(e.agent(r.Agent), c)
		}
	case eventlog.KindFact:
		if f, err := r.Fact(); err == nil {
			e.fact(r, f)
		}
	}
	return e.out
}

// End returns what ends the response: nothing is encoded any more.
func (e *Encoder) End(end uimessage.Ending) []uimessage.Frame {
	e.out = nil
	if end.Outcome == uimessage.Failed || end.Outcome == uimessage.Aborted {
		e.fail(end.Error)
	}
	e.closeAll()
	e.finishStep()
	e.send(e.finish(end.Outcome))
	return e.out
}

// send adds a part.
func (e *Encoder) send(part any) {
	if data := encode(part); data != nil {
		e.out = append(e.out, uimessage.Harmless(data))
	}
}

// fail writes the error that ends the message.
func (e *Encoder) fail(text string) {
	if !e.failed {
		e.failed = true
		e.send(failure{Type: "error", Error: text})
	}
}

// endStep ends what an agent has open: its step is finished, or restarts.
func (e *Encoder) endStep(a *agent) {
	e.close(a, anyBlock)
	a.reasoned = false
	if a.id == e.root {
		e.finishStep()
	}
}

func (e *Encoder) closeAll() {
	for _, id := range slices.Sorted(maps.Keys(e.agents)) {
		e.close(e.agents[id], anyBlock)
	}
}

func (e *Encoder) finishStep() {
	if e.step != nil {
		e.step = nil
		e.send(bare{Type: "finish-step"})
	}
}
