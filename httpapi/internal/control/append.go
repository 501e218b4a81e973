package control

import (
	"cmp"
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
	c.key, err = idempotencyKey(h)
	return c, err
}

// idempotencyKey returns the key of a request that may be repeated, or "".
func idempotencyKey(h http.Header) (string, error) {
	v := h.Values(api.HeaderIdempotency)
	switch {
	case len(v) == 0:
		return "", nil
	case len(v) > 1:
		return "", web.Invalid(api.HeaderIdempotency, "is given twice")
	}
	if problem, bad := errors.AsType[*eventlog.ValidationError](eventlog.ValidateID(v[0])); bad {
		return "", web.Invalid(api.HeaderIdempotency, problem.Reason)
	}
	return v[0], nil
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
	done, err := s.appendBehind(ctx, r.Session, pre, p)
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		err = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
	}
	if err != nil {
		return err
	}
	return r.OK(w, done)
}

// appendBehind appends p after the sequence that the producer expects, or at the
// session's head. Each try knows the fold of all that it follows: it
// tells whether the key was answered, and what may follow. A node that was the last
// one to append to the session has that in memory, and the comparison of the append
// proves it. When somebody else writes in between, and be it the same request by
// another way, the next try sees that.
func (s *Routes) appendBehind(ctx context.Context, session string, pre preconditions, p production) (done api.Appended, err error) {
	again := false
	writer, digest := rand.Text(), ""
	if pre.key != "" {
		digest = p.digest()
		writer = eventlog.KeyedWriter(pre.key, digest)
	}
	tip, err := s.states.Tip(ctx, session)
	if err != nil {
		return api.Appended{}, err
	}
	defer tip.Release()
	var unexpected error // is for the producer, and no reason to try again
	err = eventlog.Contend(ctx, s.log, session, func(ctx context.Context) error {
		for {
			if again {
				if err := tip.Read(ctx); err != nil {
					return err
				}
			}
			again = true
			var sent bool
			unexpected = nil
			done, sent, err = s.tryAppend(ctx, tip, writer, digest, &pre, p, &unexpected)
			// No answer but an append is decided by a state that may be old.
			if tip.Current() || sent && !errors.Is(err, eventlog.ErrSessionNotFound) {
				return err
			}
		}
	})
	if err = cmp.Or(err, unexpected); err != nil {
		return api.Appended{}, err
	}
	return done, nil
}

// tryAppend appends p to a state. sent tells whether it was sent to the log.
func (s *Routes) tryAppend(ctx context.Context, tip *snapshot.Tip, writer, digest string, pre *preconditions, p production, unexpected *error) (done api.Appended, sent bool, err error) {
	caller, t := auth.CallerOf(ctx), tip.Tree()
	switch a, known := t.Appends.Get(pre.key); { // no append has an empty key
	case known && a.Digest != digest:
		return done, false, ErrMismatch
	case known:
		return api.Appended{FirstSequence: a.FirstSequence, LastSequence: a.LastSequence, Count: a.Count}, false, nil
	case pre.key != "" && t.OldKeys.Has(pre.key):
		return done, false, ErrKeyExpired
	}
	if !caller.MayUse(t) { // since it was authorized
		return done, false, auth.ErrForbidden
	}
	if pre.expectedGiven && pre.expected != t.Head {
		if pre.expected > t.Head && tip.Current() { // another node may have answered with it
			err := eventlog.Ahead(ctx, s.log, tip.Session(), pre.expected)
			if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); !ahead && !errors.Is(err, eventlog.ErrSessionNotFound) {
				return done, false, err
			}
		}
		*unexpected = &eventlog.ConflictError{Head: t.Head}
		return done, false, nil
	}
	if err := p.check(ctx, t); err != nil {
		return done, false, err
	}
	charged, err := s.charge(ctx, caller, tip.Session(), t, p)
	if err != nil {
		return done, false, err
	}
	var appended *projector.Tree
	defer func() { charged.Done(appended) }()
	if t.Head == 0 && (caller.Bound() || caller.Tenant != "") {
		if err := s.createFor(ctx, caller, tip, p.agentType); err != nil {
			return done, true, err
		}
		pre.expected = tip.Tree().Head
		appended = &projector.Tree{Head: pre.expected} // the session counts, whatever becomes of the rest
	}
	last, err := tip.Append(ctx, writer, p.entries)
	if err == nil {
		done = api.Appended{FirstSequence: last + 1 - uint64(len(p.entries)), LastSequence: last, Count: len(p.entries)}
		appended = &projector.Tree{Head: last, Bytes: tip.Tree().Bytes}
	}
	return done, true, err
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
	entry, err := eventlog.NewFact(session, &eventlog.SessionCreated{
		AgentType: agentType, UserID: c.OnlyUser(), Tenant: c.Tenant, FactBase: eventlog.FactBase{SessionID: session, Timestamp: time.Now().UnixMilli(), By: eventlog.ActorOf(ctx)},
	}, eventlog.Labels{})
	if err == nil {
		_, err = tip.Append(ctx, rand.Text(), []eventlog.Entry{entry})
	}
	return err
}

// End answers POST /sessions/{id}/end: the stream is complete.
func (s *Routes) End(w http.ResponseWriter, r *web.Request) error {
	raw, err := r.ReadBody(w, api.MaxBody, web.DefaultBodyTimeout)
	if err != nil {
		return err
	}
	end := &eventlog.StreamEnd{StreamID: r.Session, Timestamp: time.Now().UnixMilli()}
	if len(raw) > 0 { // all that it can say is optional
		body, err := web.ParseObject(raw)
		if err != nil {
			return err
		}
		if end.FinalOutput, err = web.Compacted(body.Members["finalOutput"]); err != nil {
			return err
		}
	}
	return s.closeStream(w, r, end, len(end.FinalOutput) == 0, digest([]byte(end.Type()), end.FinalOutput))
}

// FailStream answers POST /sessions/{id}/fail: the stream ends with an error.
func (s *Routes) FailStream(w http.ResponseWriter, r *web.Request) error {
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	failed := &eventlog.StreamFailed{
		Error:    body.Word("error"),
		FactBase: eventlog.FactBase{SessionID: r.Session, Timestamp: time.Now().UnixMilli(), By: eventlog.ActorOf(r.Context())},
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
func (s *Routes) closeStream(w http.ResponseWriter, r *web.Request, f eventlog.Fact, free bool, digest func() string) error {
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
