package textstream

import (
	"maps"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/uimessage"
)

// Options say what an [Encoder] encodes.
type Options struct {
	Root string // id of the tree's root session
	// Earlier are the calls of earlier messages, by id: what comes of them
	// belongs there.
	Earlier map[string]bool
}

// Encoder encodes one response: a message's stream from a cut, or from its
// beginning, to its end. It is for one goroutine.
type Encoder struct {
	root    string
	earlier map[string]bool
	agents  map[string]*agent
	// parents are the calls that sub-agents' sessions belong to, by session.
	parents map[string]string
	inStep  bool // the client has a start-step without its finish-step
	over    bool // the root's run has ended, in this response
	failed  bool // the client has an error

	usage       usage
	reason      eventlog.FinishReason // of the root's last step
	first, last time.Time             // of the root's chunks

	seen bool // the client has what is being encoded
	out  []uimessage.Frame
}

// New returns an encoder that has not been given any record.
func New(o Options) *Encoder {
	return &Encoder{root: o.Root, earlier: o.Earlier, agents: map[string]*agent{}, parents: map[string]string{}}
}

// Start returns what begins a message, for a client that has nothing of it.
func (e *Encoder) Start() []uimessage.Frame {
	e.begin(false)
	e.send(bare{Type: "start"})
	return e.frames(0)
}

// Encode returns the frames of a message's next record, often none. Of what the
// client has seen, which comes first, there are none: it only counts for what
// follows. Records that can't be read are left out.
func (e *Encoder) Encode(r eventlog.Record, seen bool) []uimessage.Frame {
	e.begin(seen)
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
	return e.frames(r.Sequence)
}

// End returns what ends the response: nothing is encoded any more.
func (e *Encoder) End(end uimessage.Ending) []uimessage.Frame {
	e.begin(false)
	if end.Outcome == uimessage.Failed || end.Outcome == uimessage.Aborted {
		e.fail(end.Error)
	}
	for _, id := range slices.Sorted(maps.Keys(e.agents)) {
		e.close(e.agents[id], anyBlock)
	}
	e.finishStep()
	e.send(e.finish(end.Outcome))
	return e.frames(end.Sequence)
}

func (e *Encoder) begin(seen bool) { e.seen, e.out = seen, nil }

// frames returns what was sent; the client has the record with the last one.
func (e *Encoder) frames(sequence uint64) []uimessage.Frame {
	if n := len(e.out); n > 0 {
		e.out[n-1].Sequence = sequence
	}
	return e.out
}

// send adds a part, unless the client has it.
func (e *Encoder) send(part any) {
	if e.seen {
		return
	}
	if data := encode(part); data != nil {
		e.out = append(e.out, uimessage.Frame{Data: uimessage.Harmless(data)})
	}
}

// fail tells of the error that ends the message.
func (e *Encoder) fail(text string) {
	if !e.failed {
		e.failed = true
		e.send(failure{Type: "error", Error: text})
	}
}

// endStep ends what an agent has open: its step is over, or begins anew.
func (e *Encoder) endStep(a *agent) {
	e.close(a, anyBlock)
	a.reasoned = false
	if a.id == e.root {
		e.over = false
		e.finishStep()
	}
}

func (e *Encoder) finishStep() {
	if e.inStep {
		e.inStep = false
		e.send(bare{Type: "finish-step"})
	}
}
