package durable

import (
	"context"
	"errors"
	"time"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/durable"
)

// Create is a request to create a stream.
type Create struct {
	ContentType string // empty: that of the source, or DefaultContentType
	TTL         *int64 // in seconds; nil: none
	ExpiresAt   string // RFC 3339; empty: never. Not together with TTL.
	Data        []byte // the first data; empty: none
	Closed      bool   // nothing more will be appended
	Fork        *Fork  // nil: the stream is new
}

// Fork says where a stream leaves another one.
type Fork struct {
	Source string  // its log
	At     *Offset // nil: its end
	Past   int64   // this many bytes or messages after At, within the append there
}

// DefaultContentType is that of streams whose creator names none.
const DefaultContentType = "application/octet-stream"

// MaxDepth is how many streams may precede a fork.
const MaxDepth = 32

const (
	// createTries is how often a stream that has expired is removed to be created.
	createTries = 3
	// createTimeout bounds how long a fork takes from its announcement to its creation.
	createTimeout = 20 * time.Second
	// pending is how long an announced fork that is not there counts as one. It exceeds
	// createTimeout by what an append without an answer may still take.
	pending = 2 * time.Minute
)

// Create creates a stream, or finds it as it is to be. Created says which.
//
// Errors: ErrExists; ErrGone if it was deleted and has forks; ErrNotFound, ErrSourceGone,
// ErrContentType, ErrForkPoint and ErrTooManyForks of the source of a fork;
// *eventlog.ValidationError; ErrBusy; as eventlog.AppendOnce; as quota.Quota.Admit.
func (s *Streams) Create(ctx context.Context, id string, by Owner, c Create) (after durable.Stream, created bool, err error) {
	for range createTries {
		after, created, err = s.create(ctx, id, by, c)
		if !errors.Is(err, errExpired) {
			return after, created, err
		}
		if err := s.Expire(ctx, id); err != nil {
			return after, false, err
		}
	}
	return after, false, ErrBusy
}

// errExpired: the stream is there and has expired.
var errExpired = errors.New("durable: expired")

func (s *Streams) create(ctx context.Context, id string, by Owner, c Create) (after durable.Stream, created bool, err error) {
	var source *fact.DurableSource
	if c.Fork != nil {
		if source, err = s.announce(ctx, id, by, &c); err != nil {
			return after, false, err
		}
		if source != nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, createTimeout)
			defer cancel()
		}
	}
	if c.ContentType == "" {
		c.ContentType = DefaultContentType
	}
	after, err = s.update(ctx, id, func(t *projector.Tree) ([]eventlog.Entry, *quota.Want, error) {
		created = false
		if t.Head > 0 {
			return nil, nil, s.matches(t, by, c)
		}
		if c.Fork != nil && source == nil { // it was there a moment ago
			return nil, nil, ErrBusy
		}
		created = true
		entries, err := s.begin(ctx, id, by, c, source)
		return entries, &quota.Want{Session: true}, err
	})
	if source != nil && (err != nil || !created) && !errors.Is(err, eventlog.ErrOutcomeUnknown) {
		s.unannounce(ctx, source)
	}
	return after, created && err == nil, err
}

// begin returns the first records of a stream.
func (s *Streams) begin(ctx context.Context, id string, by Owner, c Create, source *fact.DurableSource) ([]eventlog.Entry, error) {
	base := s.base(ctx, id)
	facts := []fact.Fact{
		&fact.SessionCreated{AgentType: agentType, UserID: by.User, Tenant: by.Tenant, Base: base},
		&fact.DurableCreated{ContentType: c.ContentType, TTL: c.TTL, ExpiresAt: c.ExpiresAt, Source: source, Base: base},
	}
	first := &fact.DurableAppended{Closes: c.Closed, Base: base}
	if source != nil {
		first.Position = source.Position
	}
	if len(c.Data) > 0 {
		if err := put(first, c.ContentType, c.Data); err != nil {
			return nil, err
		}
	}
	if first.Size() > 0 || first.Closes {
		facts = append(facts, first)
	}
	return s.facts(id, facts...)
}

// matches returns nil if a stream that exists is as it is to be created.
func (s *Streams) matches(t *projector.Tree, by Owner, c Create) error {
	if !by.may(t) {
		return ErrExists
	}
	d := t.Durable
	switch err := s.there(t); {
	case d != nil && d.Deleted && len(d.Forks) > 0:
		return ErrGone
	case err != nil:
		return errExpired
	}
	same := mediaType(d.ContentType) == mediaType(c.ContentType) && d.Closed == c.Closed && d.SameExpiry(c.TTL, c.ExpiresAt)
	if f := c.Fork; f == nil {
		same = same && d.Source == nil
	} else {
		same = same && d.Source != nil && d.Source.Stream == f.Source && (f.At == nil || f.At.Position+f.Past == d.Source.Position)
	}
	if !same {
		return ErrExists
	}
	return nil
}
