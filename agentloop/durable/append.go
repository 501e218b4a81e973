package durable

import (
	"bytes"
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/durable"
)

// Append is a request to append to a stream.
type Append struct {
	// ContentType of the data; empty, together with Data: the request only closes the stream.
	ContentType string
	Data        []byte
	Producer    *fact.DurableProducer // nil: none
	WriterSeq   string                // the writer's own sequence; empty: none
	Close       bool                  // the stream

	parsed *fact.DurableAppended // with the data; nil: there is none
}

// Parse checks the data. It must be called once, before [Streams.Append]. The error is a
// *eventlog.ValidationError for data that is not JSON where it must be, or eventlog.ErrTooLarge.
func (a *Append) Parse() error {
	if len(a.Data) == 0 {
		return nil
	}
	a.parsed = new(fact.DurableAppended)
	if err := put(a.parsed, a.ContentType, a.Data); err != nil {
		return err
	}
	if a.parsed.Size() == 0 {
		return &eventlog.ValidationError{Reason: "the array must not be empty"}
	}
	return nil
}

// Appended is what has become of an [Append].
type Appended struct {
	Tail   Offset
	Closed bool
	// Repeated: the producer's request was accepted before, and nothing was appended.
	Repeated bool
	Seq      int64 // the highest of the producer's epoch that was accepted
}

// Append appends to a stream, or closes it. With an error of a stream that exists, Tail and
// Closed say how it is.
//
// Errors: ErrNotFound, ErrGone, ErrClosed, ErrContentType, ErrSequence, *FencedError, *GapError,
// ErrFirstSeq; as eventlog.AppendOnce; as quota.Quota.Admit.
func (s *Streams) Append(ctx context.Context, id string, by Owner, a Append) (done Appended, err error) {
	after, err := s.update(ctx, id, func(t *projector.Tree) ([]eventlog.Entry, *quota.Want, error) {
		done = Appended{}
		if err := s.there(t); err != nil {
			return nil, nil, err
		}
		if !by.may(t) {
			return nil, nil, ErrNotFound
		}
		d := t.Durable
		done.Tail, done.Closed = Tail(d), d.Closed
		if repeated, err := a.check(d, &done); repeated || err != nil {
			return nil, nil, err
		}
		record := a.record(d.Position)
		record.Base = s.base(ctx, id)
		entries, err := s.facts(id, record)
		if record.Size() == 0 { // to close a stream must not be refused
			return entries, nil, err
		}
		return entries, &quota.Want{}, err
	})
	if err != nil {
		return done, err
	}
	done.Tail, done.Closed = Tail(&after), after.Closed
	if a.Producer != nil && !done.Repeated {
		done.Seq = a.Producer.Seq
	}
	return done, nil
}

// check says whether the request was carried out before, or why it can't be.
func (a Append) check(d *durable.Stream, done *Appended) (repeated bool, err error) {
	closeOnly := len(a.Data) == 0
	if p := a.Producer; p != nil {
		last, known := d.Producers[p.ID]
		switch {
		case known && p.Epoch < last.Epoch:
			return false, &FencedError{Epoch: last.Epoch}
		case d.Closed:
			if d.ClosedBy != nil && *d.ClosedBy == *p {
				done.Repeated, done.Seq = true, last.Seq
				return true, nil
			}
			return false, ErrClosed
		case known && p.Epoch == last.Epoch && p.Seq <= last.Seq:
			done.Repeated, done.Seq = true, last.Seq
			return true, nil
		case known && p.Epoch == last.Epoch && p.Seq > last.Seq+1:
			return false, &GapError{Expected: last.Seq + 1, Received: p.Seq}
		case known && p.Epoch > last.Epoch && p.Seq != 0:
			return false, ErrFirstSeq
		case !known && p.Seq != 0:
			return false, &GapError{Expected: 0, Received: p.Seq}
		}
	}
	switch {
	case d.Closed && closeOnly:
		return true, nil
	case d.Closed:
		return false, ErrClosed
	case closeOnly:
		return false, nil
	case mediaType(a.ContentType) != mediaType(d.ContentType):
		return false, ErrContentType
	case a.WriterSeq != "" && d.WriterSeq != "" && a.WriterSeq <= d.WriterSeq:
		return false, ErrSequence
	}
	return false, nil
}

// record returns the request's record.
func (a Append) record(position int64) *fact.DurableAppended {
	f := &fact.DurableAppended{Position: position, Producer: a.Producer, Closes: a.Close}
	if data := a.parsed; data != nil {
		f.Text, f.Data, f.Messages, f.WriterSeq = data.Text, data.Data, data.Messages, a.WriterSeq
	}
	return f
}

// put puts data into a record as a stream of a content type has it.
func put(f *fact.DurableAppended, contentType string, data []byte) (err error) {
	switch {
	case IsJSON(contentType):
		f.Messages, err = messages(data)
	case utf8.Valid(data):
		f.Text = string(data)
	default:
		f.Data = data
	}
	return err
}

// MaxMessages is how many messages one request may append.
const MaxMessages = 64 << 10

// messages returns the messages of a body: the elements of an array, or the one value.
func messages(data []byte) (all []json.RawMessage, err error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, &eventlog.ValidationError{Reason: "the body is not valid JSON"}
	}
	data = bytes.TrimSpace(data)
	if data[0] != '[' {
		return []json.RawMessage{data}, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		if len(all) == MaxMessages {
			return nil, eventlog.ErrTooLarge
		}
		var m json.RawMessage
		if err := d.Decode(&m); err != nil {
			return nil, &eventlog.ValidationError{Reason: "the body is not valid JSON"}
		}
		all = append(all, m)
	}
	return all, nil
}
