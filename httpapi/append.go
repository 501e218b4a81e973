package httpapi

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// Headers of appends.
const (
	headerExpected    = "Helix-Expected-Sequence"
	headerIdempotency = "Idempotency-Key"
)

// Appended is the answer of the routes that append: the sequences of the
// first and the last record, without gaps between them.
type Appended struct {
	FirstSequence uint64 `json:"firstSequence"`
	LastSequence  uint64 `json:"lastSequence"`
	Count         int    `json:"count"`
}

// production is what an outside producer wants appended.
type production struct {
	entries   []eventlog.Entry
	agentType string // of the chunks; empty: there are none
	free      bool   // it ends the stream, and carries no output
	// digest returns one of what was asked for: the same for a repeated request. It
	// is called if the request has an idempotency key.
	digest func() string
	// check refuses the append in a state; the zero state is before the
	// session's first record. It is not asked about a request that was
	// carried out.
	check func(context.Context, *projector.Tree) error
}

// preconditions are the headers of an append.
type preconditions struct {
	expected      uint64
	expectedGiven bool
	key           string // empty: none
}

func parsePreconditions(h http.Header) (c preconditions, err error) {
	if v := h.Values(headerExpected); len(v) > 0 {
		if len(v) > 1 {
			return c, invalid(headerExpected, "is given twice")
		}
		if c.expected, err = parseNumber(headerExpected, v[0]); err != nil {
			return c, err
		}
		c.expectedGiven = true
	}
	c.key, err = idempotencyKey(h)
	return c, err
}

// idempotencyKey returns the key of a request that may be repeated, or "".
func idempotencyKey(h http.Header) (string, error) {
	v := h.Values(headerIdempotency)
	switch {
	case len(v) == 0:
		return "", nil
	case len(v) > 1:
		return "", invalid(headerIdempotency, "is given twice")
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](eventlog.ValidateID(v[0])); bad {
		return "", invalid(headerIdempotency, problem.Reason)
	}
	return v[0], nil
}

// produce appends what an outside producer sent, all or none, and answers
// with its sequences.
func (s *Server) produce(w http.ResponseWriter, r *request, p production) error {
	pre, err := parsePreconditions(r.Header)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), appendTimeout)
	defer cancel()
	done, err := s.update(ctx, r.session, pre, p)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		err = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	if err != nil {
		return err
	}
	return s.ok(w, done)
}

// update appends p after the sequence that the producer expects, or at the session's
// head. Each proposal knows the fold of all that it follows: it tells whether the key was
// answered, and what may follow. A node that was the last one to append to the session
// has that in memory, and the comparison of the append proves it. When another writer is
// first, and be it the same request on another path, the next proposal sees that.
func (s *Server) update(ctx context.Context, session string, pre preconditions, p production) (Appended, error) {
	tip, err := s.states.Tip(ctx, session)
	if err != nil {
		return Appended{}, err
	}
	defer tip.Release()
	u := &update{s: s, ctx: ctx, caller: CallerOf(ctx), tip: tip, pre: pre, p: p, writer: rand.Text()}
	if pre.key != "" {
		u.digest = p.digest()
		u.writer = eventlog.KeyedWriter(pre.key, u.digest)
	}
	_, err = eventlog.Update(ctx, s.log, session, eventlog.UpdateOptions{
		Head: tip.Tree().Head, Current: tip.Current(), CatchUp: u.catchUp, Append: u.append,
	}, u.propose)
	if err != nil {
		return Appended{}, err
	}
	return u.done, nil
}

// update is an append of an outside producer.
type update struct {
	s      *Server
	ctx    context.Context
	caller Caller
	tip    *snapshot.Tip
	pre    preconditions
	p      production
	writer string
	digest string // if there is a key

	charged *quota.Admission
	done    Appended
}

func (u *update) catchUp(ctx context.Context) (uint64, error) {
	if err := u.tip.Read(ctx); err != nil {
		return 0, err
	}
	return u.tip.Tree().Head, nil
}

// propose returns what is to be appended to the tip's state.
func (u *update) propose(uint64) ([]eventlog.Entry, error) {
	t := u.tip.Tree()
	switch a, known := t.Appends.Get(u.pre.key); { // no append has an empty key
	case known && a.Digest != u.digest:
		return nil, errMismatch
	case known:
		u.done = Appended{a.FirstSequence, a.LastSequence, a.Count}
		return nil, nil
	case u.pre.key != "" && t.OldKeys.Has(u.pre.key):
		return nil, errKeyExpired
	}
	if !u.caller.mayUse(t) { // since it was authorized
		return nil, ErrForbidden
	}
	if u.pre.expectedGiven && u.pre.expected != t.Head {
		if u.pre.expected > t.Head && u.tip.Current() { // another node may have answered with it
			err := eventlog.Ahead(u.ctx, u.s.log, u.tip.Session(), u.pre.expected)
			if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); !ahead && !errors.Is(err, eventlog.ErrSessionNotFound) {
				return nil, err
			}
		}
		return nil, &eventlog.ConflictError{Head: t.Head}
	}
	if err := u.p.check(u.ctx, t); err != nil {
		return nil, err
	}
	var err error
	u.charged, err = u.s.charge(u.ctx, u.caller, u.tip.Session(), t, u.p)
	return u.p.entries, err
}

// append appends what was proposed.
func (u *update) append(ctx context.Context, entries []eventlog.Entry) (uint64, error) {
	var appended *projector.Tree
	defer func() { u.charged.Done(appended) }()
	if u.tip.Tree().Head == 0 && (u.caller.bound() || u.caller.Tenant != "") {
		if err := u.s.createFor(ctx, u.caller, u.tip, u.p.agentType); err != nil {
			return 0, err
		}
		u.pre.expected = u.tip.Tree().Head
		appended = &projector.Tree{Head: u.pre.expected} // the session counts, whatever becomes of the rest
	}
	last, err := u.tip.Append(ctx, u.writer, entries)
	if err == nil {
		u.done = Appended{last + 1 - uint64(len(entries)), last, len(entries)}
		appended = &projector.Tree{Head: last, Bytes: u.tip.Tree().Bytes}
	}
	return last, err
}

// charge has the session's tenant admit what is appended. A free append to a session
// that exists is not charged: it must not be refused.
func (s *Server) charge(ctx context.Context, c Caller, session string, t *projector.Tree, p production) (*quota.Admission, error) {
	switch {
	case t.Head == 0:
		return s.opts.Quota.Admit(ctx, c.Tenant, session, quota.Want{Session: true, Bytes: bytesOf(p.entries)})
	case p.free:
		return nil, nil
	}
	return s.opts.Quota.Admit(ctx, t.Tenant, session, quota.Want{Bytes: bytesOf(p.entries)})
}

func bytesOf(entries []eventlog.Entry) (n int64) {
	for _, e := range entries {
		n += int64(len(e.Payload))
	}
	return n
}

// createFor begins a session for a producer that has a tenant, or is bound to a
// user.
func (s *Server) createFor(ctx context.Context, c Caller, tip *snapshot.Tip, agentType string) error {
	session := tip.Session()
	entry, err := eventlog.NewFact(session, &eventlog.SessionCreated{
		AgentType: agentType, UserID: c.only(), Tenant: c.Tenant, FactBase: eventlog.FactBase{SessionID: session, Timestamp: time.Now().UnixMilli(), By: eventlog.ActorOf(ctx)},
	}, eventlog.Labels{})
	if err == nil {
		_, err = tip.Append(ctx, rand.Text(), []eventlog.Entry{entry})
	}
	return err
}

// end answers POST /sessions/{id}/end: the stream is complete.
func (s *Server) end(w http.ResponseWriter, r *request) error {
	raw, err := readBody(w, r, MaxBody, bodyTimeout)
	if err != nil {
		return err
	}
	end := &eventlog.StreamEnd{StreamID: r.session, Timestamp: time.Now().UnixMilli()}
	if len(raw) > 0 { // all that it can say is optional
		body, err := parseObject(raw)
		if err != nil {
			return err
		}
		if end.FinalOutput, err = compacted(body.members["finalOutput"]); err != nil {
			return err
		}
	}
	return s.closeStream(w, r, end, len(end.FinalOutput) == 0, digest([]byte(end.Type()), end.FinalOutput))
}

// failStream answers POST /sessions/{id}/fail: the stream ends with an error.
func (s *Server) failStream(w http.ResponseWriter, r *request) error {
	body, err := readObject(w, r)
	if err != nil {
		return err
	}
	failed := &eventlog.StreamFailed{
		Error:    body.word("error"),
		FactBase: eventlog.FactBase{SessionID: r.session, Timestamp: time.Now().UnixMilli(), By: eventlog.ActorOf(r.Context())},
	}
	if len(failed.Error) > maxErrorText {
		body.fail("error", "must be at most 8192 bytes")
	}
	if *body.err != nil {
		return *body.err
	}
	return s.closeStream(w, r, failed, true, digest([]byte(failed.Type()), []byte(failed.Error)))
}

// maxErrorText is the longest error text that a stream ends with, in bytes.
const maxErrorText = 8 << 10

// closeStream appends a fact that ends the stream. Only the runtime ends a stream
// whose turn is open.
func (s *Server) closeStream(w http.ResponseWriter, r *request, f eventlog.Fact, free bool, digest func() string) error {
	entry, err := eventlog.NewFact(r.session, f, eventlog.Labels{})
	if err != nil {
		return err
	}
	return s.produce(w, r, production{entries: []eventlog.Entry{entry}, free: free, digest: digest, check: func(_ context.Context, t *projector.Tree) error {
		switch {
		case t.Head == 0:
			return eventlog.ErrSessionNotFound
		case t.StreamStatus.Refuses(entry.Envelope):
			return eventlog.ErrStreamEnded
		case t.Turn != nil:
			return agentloop.ErrAlreadyRunning
		}
		return nil
	}})
}

// digest tells requests apart. The parts are what was asked for, in one form.
func digest(parts ...[]byte) func() string {
	return func() string {
		sum := sha256.New()
		for _, p := range parts {
			sum.Write(p)
			sum.Write([]byte{'\n'}) // is in no compact JSON
		}
		return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
	}
}
