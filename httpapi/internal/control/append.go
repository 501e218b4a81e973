package control

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
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

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
	if v := h.Values(api.HeaderExpected); len(v) > 0 {
		if len(v) > 1 {
			return c, web.Invalid(api.HeaderExpected, "is given twice")
		}
		if c.expected, err = web.ParseNumber(api.HeaderExpected, v[0]); err != nil {
			return c, err
		}
		c.expectedGiven = true
	}
	c.key, err = web.IdempotencyKey(h)
	return c, err
}

// produce appends what an outside producer sent, all or none, and answers
// with its sequences.
func (s *Routes) produce(w http.ResponseWriter, r *web.Request, p production) error {
	pre, err := parsePreconditions(r.Header)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), appendTimeout)
	defer cancel()
	done, err := s.update(ctx, r.Session, pre, p)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		err = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	if err != nil {
		return err
	}
	return r.OK(w, done)
}

// update appends p after the sequence that the producer expects, or at the session's
// head. Each proposal knows the fold of all that it follows: it says whether the key was
// answered, and what may follow. A node that was the last one to append to the session
// has that in memory, and the comparison of the append proves it. When another writer is
// first, and be it the same request on another path, the next proposal sees that.
func (s *Routes) update(ctx context.Context, session string, pre preconditions, p production) (api.Appended, error) {
	tip, err := s.states.Tip(ctx, session)
	if err != nil {
		return api.Appended{}, err
	}
	defer tip.Release()
	u := &update{s: s, ctx: ctx, caller: auth.CallerOf(ctx), tip: tip, pre: pre, p: p, writer: rand.Text()}
	if pre.key != "" {
		u.digest = p.digest()
		u.writer = eventlog.KeyedWriter(pre.key, u.digest)
	}
	_, err = eventlog.Update(ctx, s.log, session, eventlog.UpdateOptions{
		Head: tip.Tree().Head, Current: tip.Current(), CatchUp: u.catchUp, Append: u.append,
	}, u.propose)
	if err != nil {
		return api.Appended{}, err
	}
	return u.done, nil
}

// update is an append of an outside producer.
type update struct {
	s      *Routes
	ctx    context.Context
	caller auth.Caller
	tip    *snapshot.Tip
	pre    preconditions
	p      production
	writer string
	digest string // if there is a key

	charged *quota.Admission
	done    api.Appended
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
		return nil, ErrMismatch
	case known:
		u.done = api.Appended{FirstSequence: a.FirstSequence, LastSequence: a.LastSequence, Count: a.Count}
		return nil, nil
	case u.pre.key != "" && t.OldKeys.Has(u.pre.key):
		return nil, ErrKeyExpired
	}
	if !u.caller.MayUse(t) { // since it was authorized
		return nil, auth.ErrForbidden
	}
	unused, err := u.unused(t)
	if err != nil {
		return nil, err
	}
	if u.pre.expectedGiven && u.pre.expected != t.Head && !unused {
		if u.pre.expected > t.Head && u.tip.Current() { // another node may have answered with it
			err := eventlog.CursorError(u.ctx, u.s.log, u.tip.Session(), u.pre.expected)
			if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); !ahead && !errors.Is(err, eventlog.ErrSessionNotFound) {
				return nil, err
			}
		}
		return nil, &eventlog.ConflictError{Head: t.Head}
	}
	if err := u.p.check(u.ctx, t); err != nil {
		return nil, err
	}
	u.charged, err = u.s.charge(u.ctx, u.caller, u.tip.Session(), t, u.p)
	return u.p.entries, err
}

// append appends what was proposed.
func (u *update) append(ctx context.Context, entries []eventlog.Entry) (uint64, error) {
	var appended *projector.Tree
	defer func() { u.charged.Done(appended) }()
	if u.tip.Tree().Head == 0 && owned(u.caller) {
		if err := u.s.createFor(ctx, u.caller, u.tip, u.p.agentType); err != nil {
			return 0, err
		}
		appended = &projector.Tree{Head: u.tip.Tree().Head} // the session counts even if the rest fails
	}
	last, err := u.tip.Append(ctx, u.writer, entries)
	if err == nil {
		u.done = api.Appended{FirstSequence: last + 1 - uint64(len(entries)), LastSequence: last, Count: len(entries)}
		appended = &projector.Tree{Head: last, Bytes: u.tip.Tree().Bytes}
	}
	return last, err
}

// owned reports whether a session that c begins has a tenant or a user.
func owned(c auth.Caller) bool { return c.Bound() || c.Tenant != "" }

// unused reports whether the producer expects no session, and createFor has begun one, and
// nothing else is in it: the append that began it has failed since. It could not be one with
// the creation, since it may have [eventlog.MaxAppendRecords] records itself.
func (u *update) unused(t *projector.Tree) (bool, error) {
	if !u.pre.expectedGiven || u.pre.expected != 0 || t.Head == 0 || t.AgentType == "" || !owned(u.caller) {
		return false, nil
	}
	for r, err := range u.s.log.Read(u.ctx, u.tip.Session(), 0, t.Head) {
		if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed {
			return false, nil
		}
		return err == nil && r.Sequence == t.Head && r.Type == (*fact.SessionCreated)(nil).Type(), err
	}
	return false, nil
}

// charge has the session's tenant admit what is appended. A free append to a session
// that exists is not charged: it must not be refused.
func (s *Routes) charge(ctx context.Context, c auth.Caller, session string, t *projector.Tree, p production) (*quota.Admission, error) {
	switch {
	case t.Head == 0:
		return s.quota.Admit(ctx, c.Tenant, session, quota.Want{Session: true, Bytes: bytesOf(p.entries)})
	case p.free:
		return nil, nil
	}
	return s.quota.Admit(ctx, t.Tenant, session, quota.Want{Bytes: bytesOf(p.entries)})
}

func bytesOf(entries []eventlog.Entry) (n int64) {
	for _, e := range entries {
		n += int64(len(e.Payload))
	}
	return n
}

// createFor begins a session for a producer that has a tenant, or is bound to a
// user.
func (s *Routes) createFor(ctx context.Context, c auth.Caller, tip *snapshot.Tip, agentType string) error {
	session := tip.Session()
	entry, err := eventlog.NewFact(session, &fact.SessionCreated{
		AgentType: agentType, UserID: c.OnlyUser(), Tenant: c.Tenant, Base: fact.Base{SessionID: session, Timestamp: time.Now().UnixMilli(), By: fact.ActorOf(ctx)},
	}, eventlog.Labels{})
	if err == nil {
		_, err = tip.Append(ctx, rand.Text(), []eventlog.Entry{entry})
	}
	return err
}

// End answers POST /sessions/{id}/end: the stream is complete.
func (s *Routes) End(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadOptObject(w)
	if err != nil {
		return err
	}
	end := &fact.StreamEnd{StreamID: r.Session, Timestamp: time.Now().UnixMilli()}
	if end.FinalOutput, err = web.Compacted(body.Members["finalOutput"]); err != nil {
		return err
	}
	return s.closeStream(w, r, end, len(end.FinalOutput) == 0, digest([]byte(end.Type()), end.FinalOutput))
}

// FailStream answers POST /sessions/{id}/fail: the stream ends with an error.
func (s *Routes) FailStream(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	failed := &fact.StreamFailed{
		Error: body.Word("error"),
		Base:  fact.Base{SessionID: r.Session, Timestamp: time.Now().UnixMilli(), By: fact.ActorOf(r.Context())},
	}
	if len(failed.Error) > MaxErrorText {
		body.Fail("error", "must be at most 8192 bytes")
	}
	if *body.Err != nil {
		return *body.Err
	}
	return s.closeStream(w, r, failed, true, digest([]byte(failed.Type()), []byte(failed.Error)))
}

// MaxErrorText is the longest error text that a stream ends with, in bytes.
const MaxErrorText = 8 << 10

// closeStream appends a fact that ends the stream. Only the runtime ends a stream
// whose turn is open.
func (s *Routes) closeStream(w http.ResponseWriter, r *web.Request, f fact.Fact, free bool, digest func() string) error {
	entry, err := eventlog.NewFact(r.Session, f, eventlog.Labels{})
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

// digest distinguishes requests. The parts are the content of the request, normalized.
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
