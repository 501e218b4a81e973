package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/lab/cohort"
	"github.com/helixd/helixd/agentloop/lab/result"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

const (
	begunEvent  = "lab-begun"
	lanesEvent  = "lab-lanes"
	resultEvent = "lab-result"
	// results labels the records that a table of the sessions needs; lanes have their session's id.
	results = "results"
	// pieceBytes bounds the pieces in which a session's lanes are stored.
	pieceBytes = 256 << 10
	// outputBytes bounds the output of a lab's session: a record has a largest size.
	outputBytes = 8 << 20
	idDigits    = 12
)

// journal keeps what a lab has done in a session of a log, so that a lab that dies continues, and
// people can look at it. Without a log it keeps nothing.
type journal struct {
	log  eventlog.Log
	id   string
	mu   sync.Mutex
	head uint64
	done map[string]entry
}

// entry is what is kept of a session.
type entry struct {
	result.Session
	Seconds float64 `json:"seconds"`
	// Cost and Tokens are what its live models and judges took.
	Cost   float64 `json:"cost,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
}

// begun is the data of the first record. All data say that folds need not keep them.
type begun struct {
	Transient bool   `json:"transient"`
	Name      string `json:"name"`
	Hash      string `json:"hash"` // of the cohort
	Sessions  int    `json:"sessions"`
	Baseline  string `json:"baseline"` // recorded, driven
	State     string `json:"state"`
}

// piece is a part of an entry's JSON.
type piece struct {
	Transient bool   `json:"transient"`
	Session   string `json:"session"`
	Part      int    `json:"part"` // from 1
	Parts     int    `json:"parts"`
	Text      string `json:"text"`
}

// judged is a session's result.
type judged struct {
	Transient bool              `json:"transient"`
	Result    result.Comparison `json:"result"`
	Stored    *stored           `json:"stored,omitempty"`
}

// stored are the ids of lanes that are sessions of the log, one for each repeat; "" for one that is
// none.
type stored struct {
	Baseline  []string `json:"baseline,omitempty"`
	Candidate []string `json:"candidate"`
}

// openJournal continues the lab of this state that has not ended, or begins one.
func openJournal(ctx context.Context, o *Options) (*journal, error) {
	j := &journal{log: o.Log, done: map[string]entry{}}
	if j.log == nil {
		return j, nil
	}
	state := result.HashOf([]byte(o.State))
	for n := 1; ; n++ {
		j.id = fmt.Sprintf("lab-%s-%d", state[:idDigits], n)
		ended, err := j.read(ctx)
		if err != nil {
			return nil, fmt.Errorf("the lab's session %s: %w", j.id, err)
		}
		if ended {
			continue
		}
		if j.head == 0 && o.Taken != nil {
			taken, err := o.Taken(ctx, j.id)
			if err != nil {
				return nil, err
			}
			if taken {
				continue
			}
		}
		break
	}
	if j.head > 0 {
		return j, nil
	}
	first := begun{Transient: true, Name: o.Name, Hash: o.Cohort.Header.Hash, Sessions: len(o.Cohort.Sessions), Baseline: "recorded", State: state}
	if len(o.Baseline) > 0 {
		first.Baseline = "driven"
	}
	e, err := j.event(begunEvent, results, first)
	if err != nil {
		return nil, err
	}
	return j, j.append(ctx, e)
}

// read reads what the session has, and reports whether it has ended.
func (j *journal) read(ctx context.Context) (ended bool, err error) {
	j.head, j.done = 0, map[string]entry{}
	var text strings.Builder // of an entry whose pieces follow each other
	for r, err := range j.log.Read(ctx, j.id, 0, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		j.head = r.Sequence
		d := projector.Decode(r)
		if _, is := d.Fact.(*fact.StreamEnd); is {
			return true, nil
		}
		var p piece
		c, is := d.Chunk.(*eventlog.CustomEvent)
		if !is || c.EventName != lanesEvent {
			continue
		}
		if err := json.Unmarshal(c.Data, &p); err != nil {
			return false, err
		}
		if text.WriteString(p.Text); p.Part < p.Parts {
			continue
		}
		var e entry
		if err := json.Unmarshal([]byte(text.String()), &e); err != nil {
			return false, err
		}
		j.done[e.ID] = e
		text.Reset()
	}
	return false, nil
}

// spent is what the lab has spent before it was started again, if it was.
func (j *journal) spent(parallel int) *spent {
	s := &spent{}
	seconds := 0.0
	for _, e := range j.done {
		s.cost += e.Cost
		s.tokens += e.Tokens
		seconds += e.Seconds / float64(parallel)
	}
	s.began = time.Now().Add(-time.Duration(seconds * float64(time.Second)))
	return s
}

// put keeps a session's lanes and result, all or nothing.
func (j *journal) put(ctx context.Context, e entry, c result.Comparison, s *stored) error {
	if j.log == nil {
		return nil
	}
	text, err := eventlog.Marshal(e)
	if err != nil {
		return err
	}
	var entries []eventlog.Entry
	pieces := inPieces(string(text))
	for i, p := range pieces {
		of, err := j.event(lanesEvent, e.ID, piece{Transient: true, Session: e.ID, Part: i + 1, Parts: len(pieces), Text: p})
		if err != nil {
			return err
		}
		entries = append(entries, of)
	}
	row, err := j.event(resultEvent, results, judged{Transient: true, Result: c, Stored: s})
	if err != nil {
		return err
	}
	return j.append(ctx, append(entries, row)...)
}

// inPieces cuts a text between characters.
func inPieces(text string) (pieces []string) {
	for len(text) > pieceBytes {
		piece := shorten.Text(text, pieceBytes)
		pieces, text = append(pieces, piece), text[len(piece):]
	}
	return append(pieces, text)
}

func (j *journal) event(name, call string, data any) (eventlog.Entry, error) {
	raw, err := eventlog.Marshal(data)
	if err != nil {
		return eventlog.Entry{}, err
	}
	base := eventlog.Base{AgentID: j.id, AgentType: cohort.LabType, Timestamp: time.Now().UnixMilli()}
	return eventlog.NewChunk(&eventlog.CustomEvent{EventName: name, Data: raw, Base: base}, eventlog.Labels{Call: call})
}

func (j *journal) append(ctx context.Context, entries ...eventlog.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	last, err := eventlog.Update(ctx, j.log, j.id, eventlog.UpdateOptions{
		Head: j.head, Current: true,
		CatchUp: func(context.Context) (uint64, error) {
			return 0, fmt.Errorf("the lab's session %s: another process runs this lab", j.id)
		},
	}, func(uint64) ([]eventlog.Entry, error) { return entries, nil })
	if err == nil {
		j.head = last
	}
	return err
}

// end ends the session with the report; each session's result has its own record.
func (j *journal) end(ctx context.Context, r *result.Report) error {
	if j.log == nil {
		return nil
	}
	short := *r
	short.Results = nil
	output, err := eventlog.Marshal(short)
	if err == nil && len(output) > outputBytes { // the sessions' results have them, too
		for _, list := range []*[]result.Difference{&short.Regressions, &short.Improvements, &short.Flaky, &short.Changed, &short.Unjudged} {
			*list = []result.Difference{}
		}
		output, err = eventlog.Marshal(short)
	}
	if err != nil {
		return err
	}
	e, err := eventlog.NewFact(j.id, &fact.StreamEnd{StreamID: j.id, Timestamp: time.Now().UnixMilli(), FinalOutput: output}, eventlog.Labels{})
	if err != nil {
		return err
	}
	return j.append(ctx, e)
}

// labels are people's, of the sessions of the cohort.
func (j *journal) labels(ctx context.Context, hash string) (map[string]bool, error) {
	if j.log == nil {
		return map[string]bool{}, nil
	}
	tree := new(projector.Tree)
	for r, err := range j.log.Read(ctx, LabelsID(hash), 0, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return map[string]bool{}, nil
		}
		if err != nil {
			return nil, err
		}
		projector.Apply(tree, r)
	}
	return Labels(tree.CustomState.Bytes())
}

// LabelsID is the id of the session with people's labels of the sessions of a cohort, by its hash.
func LabelsID(hash string) string { return cohort.LabelsType + "-" + hash[:min(idDigits, len(hash))] }

// Labels are those in the custom state of such a session: whether a recorded session is good.
func Labels(state json.RawMessage) (map[string]bool, error) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(state, &given); err != nil {
		return nil, err
	}
	labels := map[string]bool{}
	for session, label := range given {
		if text := string(label); text == "true" || text == "false" {
			labels[session] = text == "true"
		}
	}
	return labels, nil
}
