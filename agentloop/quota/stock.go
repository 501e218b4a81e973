package quota

import (
	"context"
	"time"

	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// Counts says what tenants use, as far as read models know.
type Counts interface {
	// TenantUse returns what a tenant uses, and the state of those of the given
	// roots that are known. It does not wait for the rows to be current.
	TenantUse(ctx context.Context, tenant string, roots []string) (readmodel.TenantUse, error)
	// Fresh says whether the rows are current.
	Fresh(ctx context.Context) readmodel.Fresh
}

const (
	// lookEvery is how long what the read models say of a tenant is taken for
	// true. What this node adds meanwhile is added to it.
	lookEvery = 100 * time.Millisecond
	// unseenFor is after what time it is asked whether read models that have not seen
	// an append are current: then they never will, since the session was erased.
	unseenFor = time.Second
	// forgetAfter is after what time an append is forgotten in any case.
	forgetAfter = time.Minute
	// leastStocks is how many tenants' stocks are kept in any case.
	leastStocks = 1024
)

// Want is what a request adds to what its tenant uses.
type Want struct {
	Session bool // a root session
	Run     bool // of a root session
	Bytes   int64
}

// stock is what a tenant has.
type stock struct {
	lock     chan struct{} // holds one while the rest is used
	removed  bool          // another one is the tenant's
	looked   time.Time
	seen     sums               // by the read models
	unseen   sums               // what of appended they have not seen
	inFlight sums               // admitted, and neither appended nor given up
	appended map[string]pending // by root: what the read models may not have seen
}

type sums struct {
	sessions, runs int
	bytes          int64
}

func (s *sums) add(w Want, n int) {
	if w.Session {
		s.sessions += n
	}
	if w.Run {
		s.runs += n
	}
	s.bytes += int64(n) * w.Bytes
}

// pending is what this node has appended to a session.
type pending struct {
	head  uint64
	bytes int64 // of the whole session
	adds  Want
	at    time.Time
}

// Admission is a request that was admitted. A nil one is of a tenant without
// limits.
type Admission struct {
	of   *stock
	root string
	want Want
}

// Admit counts a request that adds to a tenant's usage, until
// [Admission.Done] is called. It counts what the read models know, and what this
// node has admitted since: what other nodes have admitted within the read models'
// lag is not known.
//
// Errors: *Exceeded; ErrNoTenant; readmodel.ErrUnavailable; what Days returns; what
// the context ended with.
func (q *Quota) Admit(ctx context.Context, tenant, root string, want Want) (*Admission, error) {
	if tenant == "" && q.Limited(ctx, tenant) {
		return nil, ErrNoTenant
	}
	limits := q.Of(tenant)
	if want.Run && q.Daily(tenant) {
		if err := q.spendable(ctx, tenant, limits); err != nil {
			return nil, err
		}
	}
	if q == nil || q.counts == nil || limits.Sessions <= 0 && limits.Bytes <= 0 && limits.Runs <= 0 {
		return nil, nil
	}
	s, err := q.lock(ctx, tenant)
	if err != nil {
		return nil, err
	}
	defer func() { <-s.lock }()
	if time.Since(s.looked) > lookEvery {
		if err := s.look(ctx, q.counts, tenant); err != nil {
			return nil, err
		}
	}
	sessions := s.seen.sessions + s.unseen.sessions + s.inFlight.sessions
	runs := s.seen.runs + s.unseen.runs + s.inFlight.runs
	bytes := s.seen.bytes + s.unseen.bytes + s.inFlight.bytes
	switch {
	case want.Session && limits.Sessions > 0 && sessions >= limits.Sessions:
		return nil, &Exceeded{Limit: Sessions, Most: float64(limits.Sessions)}
	case want.Run && limits.Runs > 0 && runs >= limits.Runs:
		return nil, &Exceeded{Limit: Runs, Most: float64(limits.Runs)}
	case limits.Bytes > 0 && bytes+max(want.Bytes, 1) > limits.Bytes:
		return nil, &Exceeded{Limit: Bytes, Most: float64(limits.Bytes)}
	}
	s.inFlight.add(want, 1)
	return &Admission{s, root, want}, nil
}

// Done says what has become of the request: the session's state after what was
// appended, or nil if nothing was.
func (a *Admission) Done(t *projector.Tree) {
	if a == nil {
		return
	}
	s := a.of
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	s.inFlight.add(a.want, -1)
	if t == nil {
		return
	}
	adds := a.want
	was, known := s.appended[a.root]
	if known {
		adds.Session, adds.Run = adds.Session && !was.adds.Session, adds.Run && !was.adds.Run
	}
	s.unseen.add(adds, 1)
	s.appended[a.root] = pending{
		head: max(t.Head, was.head), bytes: max(t.Bytes, was.bytes), at: time.Now(),
		adds: Want{Session: a.want.Session || was.adds.Session, Run: a.want.Run || was.adds.Run, Bytes: a.want.Bytes + was.adds.Bytes},
	}
}

// look asks the read models, and forgets what they have seen.
func (s *stock) look(ctx context.Context, counts Counts, tenant string) error {
	roots := make([]string, 0, len(s.appended))
	late := false
	for root, p := range s.appended {
		roots = append(roots, root)
		late = late || time.Since(p.at) > unseenFor
	}
	current := late && counts.Fresh(ctx).Current
	use, err := counts.TenantUse(ctx, tenant, roots)
	if err != nil {
		return err
	}
	s.looked, s.seen, s.unseen = time.Now(), sums{use.Sessions, use.Runs, use.Bytes}, sums{}
	for root, p := range s.appended {
		row, there := use.Trees[root]
		age := time.Since(p.at)
		if there && row.Head >= p.head || current && age > unseenFor || age > forgetAfter {
			delete(s.appended, root)
			continue
		}
		p.adds.Session = p.adds.Session && !there
		p.adds.Run = p.adds.Run && !row.Running
		p.adds.Bytes = max(0, p.bytes-row.Bytes)
		if !there && !p.adds.Session { // it is another tenant's, or not known yet
			p.adds.Bytes = 0
		}
		s.appended[root] = p
		s.unseen.add(p.adds, 1)
	}
	return nil
}

// lock returns what a tenant has, whose lock the caller has.
func (q *Quota) lock(ctx context.Context, tenant string) (*stock, error) {
	for {
		s := q.stock(tenant)
		select {
		case s.lock <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !s.removed {
			return s, nil
		}
		<-s.lock
	}
}

// stock returns what a tenant has. It can be removed until it is locked.
func (q *Quota) stock(tenant string) *stock {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.stocks[tenant]; s != nil {
		return s
	}
	if len(q.stocks) >= q.sweepAt {
		for name, s := range q.stocks {
			select {
			case s.lock <- struct{}{}:
				if s.inFlight == (sums{}) && len(s.appended) == 0 && time.Since(s.looked) > lookEvery {
					s.removed = true
					delete(q.stocks, name)
				}
				<-s.lock
			default: // it is used
			}
		}
		q.sweepAt = max(leastStocks, 2*len(q.stocks))
	}
	s := &stock{lock: make(chan struct{}, 1), appended: map[string]pending{}}
	q.stocks[tenant] = s
	return s
}
