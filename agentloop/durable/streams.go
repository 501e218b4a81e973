package durable

import (
	"context"
	"crypto/rand"
	"maps"
	"mime"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/internal/locks"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/cache"
	"github.com/helixd/helixd/projector/durable"
	"github.com/helixd/helixd/snapshot"
)

// Streams are the durable streams of a log.
type Streams struct {
	log    eventlog.Log
	states *snapshot.Store
	quota  *quota.Quota // nil: tenants have no limits
	locks  locks.Table  // by stream: of many appends at once, all but one would have to try again
	now    func() time.Time
	// uses are the last recorded uses of streams, in ms since the epoch. The readers that follow a
	// stream have its state as it was when they came: without uses, each of them would load it
	// to find that another one has renewed it.
	uses *cache.Cache[string, int64]
}

// Bounds of Streams.uses.
const (
	maxUses  = 10_000
	useBytes = 256 // of one, about
	useIdle  = 5 * time.Minute
)

// New returns the streams of a log.
func New(log eventlog.Log, states *snapshot.Store, q *quota.Quota) *Streams {
	return &Streams{
		log: log, states: states, quota: q, now: time.Now,
		uses: cache.New[string, int64](maxUses, maxUses*useBytes, useIdle),
	}
}

// Owner is the caller of a request.
type Owner struct {
	User, Tenant string // of the streams that it creates
	// May reports whether it may use a stream in a state; nil: any.
	May func(*projector.Tree) bool
}

func (o Owner) may(t *projector.Tree) bool { return o.May == nil || o.May(t) }

// agentType is the type of agent in the first record of each stream, which has none.
const agentType = "durable-stream"

// IsJSON reports whether streams of a content type have messages and not bytes.
func IsJSON(contentType string) bool { return mediaType(contentType) == "application/json" }

// IsText reports whether streams of a content type are sent as text and not as base64.
func IsText(contentType string) bool {
	return IsJSON(contentType) || strings.HasPrefix(mediaType(contentType), "text/")
}

// mediaType returns a content type without parameters, in lower case.
func mediaType(contentType string) string {
	if t, _, err := mime.ParseMediaType(contentType); err == nil {
		return t
	}
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// Tail returns the end of a stream.
func Tail(s *durable.Stream) Offset { return Offset{Position: s.Position, Sequence: s.Sequence} }

// there returns an error unless a state is that of a stream that can be used.
func (s *Streams) there(t *projector.Tree) error {
	switch {
	case t.Durable == nil:
		return ErrNotFound
	case t.Durable.Deleted:
		return ErrGone
	case s.expired(t.Durable):
		return ErrNotFound
	}
	return nil
}

func (s *Streams) expired(d *durable.Stream) bool {
	at := d.Expires()
	return at != 0 && at <= s.now().UnixMilli()
}

// Use records that a reader uses a stream, if its TTL needs that. d may be an earlier state.
// Errors: ErrNotFound; ErrGone; those of the log.
func (s *Streams) Use(ctx context.Context, id string, d *durable.Stream) error {
	due := func(usedAt int64) bool {
		return d.TTL != nil && s.now().UnixMilli()-usedAt > d.Renewal().Milliseconds()
	}
	if !due(d.UsedAt) {
		return nil
	}
	return s.uses.Use(ctx, id, func(usedAt *int64) (int, error) {
		if !due(*usedAt) {
			return useBytes, nil
		}
		after, err := s.update(ctx, id, func(t *projector.Tree) ([]eventlog.Entry, *quota.Want, error) {
			if err := s.there(t); err != nil || !due(t.Durable.UsedAt) {
				return nil, nil, err
			}
			entries, err := s.facts(id, &fact.DurableChanged{Base: s.base(ctx, id)})
			return entries, nil, err
		})
		*usedAt = after.UsedAt
		return useBytes, err
	})
}

// base returns what all facts have.
func (s *Streams) base(ctx context.Context, id string) fact.Base {
	return fact.Base{SessionID: id, Timestamp: s.now().UnixMilli(), By: fact.ActorOf(ctx)}
}

func (s *Streams) facts(id string, facts ...fact.Fact) ([]eventlog.Entry, error) {
	entries := make([]eventlog.Entry, len(facts))
	for i, f := range facts {
		var err error
		if entries[i], err = eventlog.NewFact(id, f, eventlog.Labels{}); err != nil {
			return nil, err
		}
		if most := s.log.Info().MaxRecordBytes; most > 0 && len(entries[i].Payload) > most {
			return nil, eventlog.ErrTooLarge
		}
	}
	return entries, nil
}

// update appends what propose returns for a stream's state, which is the zero state if there
// is none, exactly once, and returns the state after it. What is wanted is charged to the
// stream's tenant. The state that propose receives must not be changed; the one that is returned
// has no producers.
func (s *Streams) update(
	ctx context.Context, id string, propose func(*projector.Tree) ([]eventlog.Entry, *quota.Want, error),
) (after durable.Stream, err error) {
	done, err := s.locks.Lock(ctx, id)
	if err != nil {
		return after, err
	}
	defer done()
	tip, err := s.states.Tip(ctx, id)
	if err != nil {
		return after, err
	}
	defer tip.Release()
	var charged *quota.Admission
	_, err = eventlog.Update(ctx, s.log, id, eventlog.UpdateOptions{
		Head: tip.Tree().Head, Current: tip.Current(),
		CatchUp: func(ctx context.Context) (uint64, error) {
			err := tip.Read(ctx)
			return tip.Tree().Head, err
		},
		Append: func(ctx context.Context, entries []eventlog.Entry) (uint64, error) {
			last, err := tip.Append(ctx, rand.Text(), entries)
			if err != nil {
				charged.Done(nil)
				return last, err
			}
			charged.Done(tip.Tree())
			return last, nil
		},
	}, func(uint64) ([]eventlog.Entry, error) {
		entries, want, err := propose(tip.Tree())
		if charged = nil; err == nil && want != nil {
			for _, e := range entries {
				want.Bytes += int64(len(e.Payload))
			}
			charged, err = s.quota.Admit(ctx, tenantOf(tip.Tree(), entries), id, *want)
		}
		return entries, err
	})
	if d := tip.Tree().Durable; err == nil && d != nil {
		after = *d
		after.Producers, after.Forks = nil, maps.Clone(d.Forks) // the fold continues with its own
	}
	return after, err
}

// tenantOf returns whose stream it is, or will be.
func tenantOf(t *projector.Tree, entries []eventlog.Entry) string {
	if t.Head == 0 && len(entries) > 0 {
		if f, err := entries[0].Fact(); err == nil {
			if created, ok := f.(*fact.SessionCreated); ok {
				return created.Tenant
			}
		}
	}
	return t.Tenant
}
